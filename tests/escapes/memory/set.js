// Attempt: to take gigabytes with a set.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const set = new Set();
for (let n = 0; ; n++) set.add(n);
