// Attempt: to use shared memory, threads, compiled code and clocks of high resolution.
// Contained: none of them exists.
// expect: value []
return ['WebAssembly', 'Atomics', 'SharedArrayBuffer', 'Worker', 'performance', 'Temporal', 'ShadowRealm', 'MessageChannel']
  .filter((name) => name in globalThis);
