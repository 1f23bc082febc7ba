// Attempt: to take gigabytes with a power.
// Contained: the engine throws a RangeError before it takes memory.
// expect: error script_failed details.kind=exception
return String(2n ** (2n ** 33n));
