// Attempt: to go on after the end, in a block that always runs.
// Contained: the script ends at its time limit.
// expect: error timeout
// timeout_ms: 300
try {
  throw new Error('an end');
} finally {
  for (;;) await sleep(20);
}
