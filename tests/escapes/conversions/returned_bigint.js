// Attempt: to return a number that JSON does not have.
// Contained: the script fails.
// expect: error script_failed details.kind=value
return { value: 2n ** 64n };
