// Attempt: to take gigabytes with promises of the script.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const kept = [];
for (;;) kept.push(new Promise(() => {}).then(() => {}));
