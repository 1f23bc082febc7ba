// Attempt: to run forever in an async function that calls itself.
// Contained: the script ends at its time limit, or at its memory.
// expect: error limit_exceeded details.limit=memory
async function deep() { await null; return deep(); }
await deep();
