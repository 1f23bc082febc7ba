// Attempt: to run forever by catching the end of its memory.
// Contained: a script cannot catch that.
// expect: error limit_exceeded details.limit=memory
for (;;) {
  try {
    const kept = [];
    for (;;) kept.push(new Array(1000).fill(kept));
  } catch {}
}
