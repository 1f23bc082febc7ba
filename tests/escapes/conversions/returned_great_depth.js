// Attempt: to overflow the stack while the returned value is read.
// Contained: the script fails.
// expect: error script_failed details.kind=value
let value = 1;
for (let n = 0; n < 50000; n++) value = { value };
return value;
