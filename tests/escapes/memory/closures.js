// Attempt: to take gigabytes with functions that keep each other.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
let last = () => 0;
for (;;) {
  const previous = last;
  last = () => previous;
}
