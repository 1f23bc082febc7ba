// Attempt: to crash the client or the service with a value that is nested deeply.
// Contained: the script fails, and the answer is flat.
// expect: error script_failed details.kind=value
let value = 1;
for (let n = 0; n < 126; n++) value = [value];
return value;
