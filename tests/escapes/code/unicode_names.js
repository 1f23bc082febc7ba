// Attempt: to confuse readers with invisible characters in names.
// Contained: they are no part of names, and such code is refused.
// expect: error script_failed details.kind=syntax
const a​b = 1;
return a​b;
