// Attempt: to use what only constructors have.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
return new.target;
