// Attempt: to flood the client with the message, the trace and the fields of an error.
// Contained: the script fails, and the answer is short.
// expect: error script_failed details.kind=exception
const error = new Error('x'.repeat(2e6));
error.stack = 'at f (script.js:1:1)\n'.repeat(1e5);
error.name = 'y'.repeat(1e6);
throw error;
