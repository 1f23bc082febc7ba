// Attempt: to take gigabytes by writing JSON of one large array many times.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
let value = ['text'.repeat(100)];
for (let n = 0; n < 40; n++) value = [value, value];
return JSON.stringify(value).length;
