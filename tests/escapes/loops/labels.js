// Attempt: to run forever by jumping to labels.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
outer: for (;;) {
  inner: for (;;) {
    try { continue outer; } finally { break inner; }
  }
}
