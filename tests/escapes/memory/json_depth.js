// Attempt: to overflow the native stack by reading JSON that is deep.
// Contained: the engine throws a RangeError.
// expect: error script_failed details.kind=exception
return JSON.parse('['.repeat(1e6) + ']'.repeat(1e6)).length;
