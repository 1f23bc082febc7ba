// Attempt: to multiply calls with chains.
// Contained: each step counts as a call.
// expect: error limit_exceeded details.limit=tool_calls
// max_tool_calls: 10
const step = { tool_id: 'fake/echo', args: { value: 1 } };
for (;;) await runChain([step, step, step]);
