// Attempt: to take gigabytes with errors and their traces.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const kept = [];
for (;;) kept.push(new Error('x'.repeat(100)));
