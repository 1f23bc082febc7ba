// Attempt: to take gigabytes with a map.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const map = new Map();
for (let n = 0; ; n++) map.set(n, `${n}`);
