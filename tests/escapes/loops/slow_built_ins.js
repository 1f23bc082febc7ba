// Attempt: to keep single built-in functions busy, in which the engine looks for no end.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
const large = 'ab'.repeat(1 << 18);
for (;;) {
  large.lastIndexOf('ba'.repeat(1000) + 'x');
  large.split('').reverse().join('').normalize('NFD');
  (3n ** 20000n).toString();
}
