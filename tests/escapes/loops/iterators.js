// Attempt: to run forever over an iterator without an end.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
const endless = { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) };
for (const _ of endless) {}
