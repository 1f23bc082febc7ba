// Attempt: to wait forever without doing anything.
// Contained: the script fails at once, because nothing can settle the promise.
// expect: error script_failed details.kind=stuck
await new Promise(() => {});
