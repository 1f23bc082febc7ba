// Attempt: to exhaust the service with a chain of 200000 steps.
// Contained: it counts as 200000 calls, and fails.
// expect: error limit_exceeded details.limit=tool_calls
await runChain(new Array(200000).fill(0));
