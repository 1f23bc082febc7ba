// Attempt: to run forever after the end, while the value is read.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
return { toJSON() { for (;;) {} } };
