// Attempt: to take gigabytes with generators that wait.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const kept = [];
for (;;) {
  const made = (function* () { yield new Array(100).fill(1); yield 2; })();
  made.next();
  kept.push(made);
}
