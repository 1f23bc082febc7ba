// Attempt: to overflow the native stack with 200000 arguments.
// Contained: the engine throws a RangeError, or the script ends at its memory.
// expect: error script_failed details.kind=exception
const list = new Array(2e5).fill(1);
return Math.max(...list) + Math.max.apply(null, list) + String.fromCharCode(...list).length;
