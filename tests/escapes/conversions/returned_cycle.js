// Attempt: to return a value that contains itself.
// Contained: the script fails.
// expect: error script_failed details.kind=value
const value = {};
value.value = value;
return value;
