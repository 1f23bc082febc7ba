// Attempt: to take gigabytes with a large number.
// Contained: the engine throws a RangeError before it takes memory.
// expect: error script_failed details.kind=exception
return String(1n << (2n ** 40n));
