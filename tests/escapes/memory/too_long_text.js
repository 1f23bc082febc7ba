// Attempt: to make a text longer than any that the engine has.
// Contained: the engine throws a RangeError before it takes memory.
// expect: error script_failed details.kind=exception
return 'x'.repeat(2 ** 31);
