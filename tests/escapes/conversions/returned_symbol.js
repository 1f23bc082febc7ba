// Attempt: to return nothing that JSON knows.
// Contained: the value is null.
// expect: value null
return Symbol('x');
