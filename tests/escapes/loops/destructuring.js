// Attempt: to run forever in an assignment, whose iterator closes never.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
const endless = { [Symbol.iterator]: () => ({ next: () => ({ done: false }), return() { for (;;) {} } }) };
const [first] = endless;
return first;
