// Attempt: to run forever by overflowing the stack at each level again.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
function deep() {
  try { deep(); } catch { }
  try { deep(); } catch { }
}
for (;;) deep();
