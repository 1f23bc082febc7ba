// Attempt: to show that a script which frees its memory is not ended.
// Contained: 400 MiB one after another are no more than 4 MiB at a time.
// expect: value 100
let n = 0;
for (; n < 100; n++) new ArrayBuffer(4 << 20);
return n;
