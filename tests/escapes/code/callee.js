// Attempt: to get the function that contains the script.
// Contained: it has no name and no arguments.
// expect: error script_failed details.kind=exception
return arguments.callee;
