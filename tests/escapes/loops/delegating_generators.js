// Attempt: to overflow the native stack with generators that delegate to each other.
// Contained: the engine throws, or the script reaches a limit.
// expect: error script_failed details.kind=exception
function* deep() { yield* deep(); }
for (const n of deep()) return n;
