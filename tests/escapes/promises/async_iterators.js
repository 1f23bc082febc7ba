// Attempt: to keep the script alive, or to lose calls, with asynchronous iterators that never close.
// Contained: the loop ends, and what was begun is cancelled.
// expect: value [0,1,2]
const seen = [];
const endless = {
  [Symbol.asyncIterator]: () => ({ n: 0, next() { return { value: this.n++, done: false }; }, return() { return new Promise(() => {}); } }),
};
const loop = (async () => {
  for await (const n of endless) {
    seen.push(n);
    if (n === 2) break;
  }
})();
await Promise.race([loop, sleep(50)]);
return seen;
