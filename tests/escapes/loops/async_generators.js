// Attempt: to run forever in an async generator.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
async function* endless() { for (;;) yield 1; }
for await (const n of endless());
