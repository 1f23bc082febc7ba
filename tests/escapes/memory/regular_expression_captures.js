// Attempt: to take gigabytes with matches.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const kept = [];
for (;;) kept.push(/(a)(b)?(?<name>c)/d.exec('ac'));
