// Attempt: to observe the collection of garbage, which would make two runs differ.
// Contained: weak references and finalisers do not exist; weak maps show nothing of it.
// expect: value ["undefined","undefined",true,"undefined"]
const key = {};
const map = new WeakMap([[key, 1]]);
return [typeof WeakRef, typeof FinalizationRegistry, map.has(key), typeof gc];
