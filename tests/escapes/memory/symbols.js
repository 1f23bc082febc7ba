// Attempt: to take gigabytes with symbols and their texts.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const kept = [];
for (let n = 0; ; n++) kept.push(Symbol(`symbol ${n}`));
