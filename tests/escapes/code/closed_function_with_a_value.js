// Attempt: to end the function, and to leave a value that is no function.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
}) + ((x) => { return 'outside';
