// Attempt: to have the end of the function in a comment that does not end.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
return 7; /* });
