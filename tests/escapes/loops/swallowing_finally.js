// Attempt: to swallow the exception that would end it.
// Contained: no exception ends it, and the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
function swallow() {
  for (;;) {
    try {
      throw new Error('an end');
    } catch {
      continue;
    } finally {
      try { swallow(); } catch {}
    }
  }
}
swallow();
