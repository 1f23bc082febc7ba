// Attempt: to flood the client with the returned value.
// Contained: the value counts as output.
// expect: error limit_exceeded details.limit=output
return 'x'.repeat(2 << 20);
