// Attempt: to flood the client with the details of a tool's error, or to crash it with their depth.
// Contained: the script fails with that error, without the details.
// expect: error internal
let deep = 1;
for (let n = 0; n < 1000; n++) deep = { deep };
const error = new ToolError({ code: 'internal', message: 'x'.repeat(1e6), details: { large: 'x'.repeat(1e6), deep } });
error.hint = 'x'.repeat(1e6);
error.server = 'x'.repeat(1e6);
error.tool = 'x'.repeat(1e6);
throw error;
