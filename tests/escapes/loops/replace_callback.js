// Attempt: to run forever in the callback of a replacement.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
'a'.replace(/a/, () => { for (;;) {} });
