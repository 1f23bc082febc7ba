// Attempt: to run forever in a thenable that resolves with itself.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
const trap = { then(resolve) { resolve(trap); } };
await trap;
