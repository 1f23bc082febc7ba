// Attempt: to run forever, with a condition.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
let n = 0;
while (n >= 0) n = (n + 1) % 1000;
