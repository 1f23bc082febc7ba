// Attempt: to take gigabytes with weak maps whose entries keep each other.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
const map = new WeakMap();
let key = {};
for (;;) {
  const next = { key };
  map.set(key, next);
  key = next;
}
