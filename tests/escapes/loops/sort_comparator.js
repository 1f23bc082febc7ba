// Attempt: to run forever in a comparator.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
[2, 1].sort(() => { for (;;) {} });
