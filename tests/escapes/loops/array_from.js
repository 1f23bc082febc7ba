// Attempt: to run forever in a built-in function that reads a length and an iterator of the script.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
Array.from({ length: 1, get 0() { for (;;) {} } });
