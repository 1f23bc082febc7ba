// Attempt: to flood the client with output.
// Contained: the script ends at its output.
// expect: error limit_exceeded details.limit=output
for (;;) console.log('x'.repeat(10000));
