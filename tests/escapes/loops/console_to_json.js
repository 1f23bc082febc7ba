// Attempt: to run forever while a value is printed.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
console.log({ toJSON() { for (;;) {} } });
