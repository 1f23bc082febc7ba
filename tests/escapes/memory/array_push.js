// Attempt: to take a gigabyte with an array that grows.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const kept = [];
for (;;) kept.push({ kept });
