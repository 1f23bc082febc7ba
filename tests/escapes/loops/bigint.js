// Attempt: to keep the arithmetic of large numbers busy in one operation.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
let n = 3n ** 200000n;
for (;;) n = (n * n) % (7n ** 150000n);
