// Attempt: to take gigabytes with jobs that have not run.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
for (;;) Promise.resolve().then(() => {});
