// Attempt: to run forever in a generator.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
function* endless() { for (;;) yield 1; }
let sum = 0;
for (const n of endless()) sum += n;
return sum;
