// Attempt: to run forever after the end, while the uncaught error is described.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
throw Object.defineProperty(new Error('x'), 'message', { get() { for (;;) {} } });
