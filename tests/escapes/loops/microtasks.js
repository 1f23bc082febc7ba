// Attempt: to run forever in jobs that the engine runs between results.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
const again = () => { Promise.resolve().then(again); };
again();
await new Promise(() => {});
