// Attempt: to use the numbers of sloppy code.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
return 0777;
