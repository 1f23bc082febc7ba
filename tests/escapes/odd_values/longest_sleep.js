// Attempt: to sleep longer than its time.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
await sleep(30000);
