// Attempt: to take gigabytes with an array that doubles.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
let list = [1];
for (;;) list = [...list, ...list];
