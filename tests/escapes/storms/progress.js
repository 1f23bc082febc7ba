// Attempt: to flood the service with progress.
// Contained: the script returns.
// expect: value 10000
let n = 0;
for (; n < 10000; n++) progress(n, 10000, 'a step');
return n;
