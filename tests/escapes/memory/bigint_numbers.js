// Attempt: to take gigabytes with many large numbers.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const kept = [];
for (let n = 0n; ; n++) kept.push((1n << 100000n) + n);
