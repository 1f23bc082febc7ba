// Attempt: to take memory while the uncaught error is described: errors that cause each other.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
let error = new Error('first');
for (;;) error = new Error('next', { cause: error });
