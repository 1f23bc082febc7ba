// Attempt: to keep a built-in function busy with a length of 2^53.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);
