// Attempt: to show that a script which makes cycles is not ended: they are collected.
// Contained: they are no leak.
// expect: value 100000
let n = 0;
for (; n < 100000; n++) {
  const cycle = { n };
  cycle.cycle = cycle;
}
return n;
