// Attempt: to take gigabytes while the returned value is read: few objects whose JSON is large.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
let value = ['text'.repeat(100)];
for (let n = 0; n < 40; n++) value = [value, value];
return value;
