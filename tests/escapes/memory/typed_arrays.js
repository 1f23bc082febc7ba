// Attempt: to take gigabytes with typed arrays.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const kept = [];
for (;;) kept.push(new Float64Array(1 << 16));
