// Attempt: to wait for a promise that waits for itself.
// Contained: the script fails at once.
// expect: error script_failed details.kind=exception
const { promise, resolve } = Promise.withResolvers();
resolve(promise);
await promise;
