// Attempt: to use reserved words as names.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
let yield_ = 1, let = 2;
return let;
