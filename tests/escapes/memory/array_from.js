// Attempt: to take gigabytes with one built-in function.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
Array.from({ length: 1e9 }, (_, n) => ({ n }));
