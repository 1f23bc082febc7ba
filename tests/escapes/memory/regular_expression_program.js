// Attempt: to take gigabytes with the program of a pattern that repeats itself.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
let pattern = 'a{1,9}b?(?:c|d)[e-z\\u0100-\\uffff]';
const kept = [];
for (;;) {
  pattern = `(?:${pattern}){1,9}|${pattern}`;
  kept.push(new RegExp(pattern));
}
