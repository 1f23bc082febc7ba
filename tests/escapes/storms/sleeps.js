// Attempt: to exhaust the service with thousands of pauses at once.
// Contained: a script waits for at most 4096 operations; the others fail.
// expect: value ["limit_exceeded","pending",4096,1904]
let first;
let n_failed = 0;
for (let n = 0; n < 6000; n++) {
  sleep(30000).catch((error) => { first ??= error; n_failed += 1; });
}
await Promise.resolve();
return [first.code, first.details.limit, first.details.value, n_failed];
