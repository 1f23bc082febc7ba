// Attempt: to take gigabytes by filling an array.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
new Array(2 ** 32 - 1).fill(0);
