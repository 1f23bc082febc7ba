// Attempt: to take gigabytes with the names of properties, which the engine keeps in a table.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const bag = {};
for (let n = 0; ; n++) bag[`name${n}`] = n;
