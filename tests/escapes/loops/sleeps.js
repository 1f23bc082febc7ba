// Attempt: to run forever in pauses that take no time.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
for (;;) await sleep(0);
