// Attempt: to end with nothing.
// Contained: the value is null.
// expect: value null
