// Attempt: to take gigabytes with classes.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const kept = [];
for (;;) kept.push(class extends Array { #hidden = 1; static own = {}; get field() { return this.#hidden; } });
