// Attempt: to pause without end, many times at once.
// Contained: the script ends at the most operations that a script has.
// expect: error limit_exceeded details.limit=operations
for (;;) await Promise.all(Array.from({ length: 4000 }, () => sleep(0)));
