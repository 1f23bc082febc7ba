// Attempt: to forge the place and the functions of a failure.
// Contained: the script fails, and the trace is short text.
// expect: error script_failed details.kind=exception
const error = new Error('forged');
error.stack = 'at <script>alert(1)</script> (script.js:99999999999999999999:1)\nat \u001b[31mred (script.js:4294967295:4294967295)\n'
  + 'at f (script.js:0:0)\n'.repeat(10000);
throw error;
