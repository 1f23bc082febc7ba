// Attempt: to take more memory in the pipe than in the engine, with a text that grows by its encoding.
// Contained: the script ends at its memory or at its output.
// expect: error limit_exceeded details.limit=memory
console.log('\u{10ffff}'.repeat(3e6));
