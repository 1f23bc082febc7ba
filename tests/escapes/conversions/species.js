// Attempt: to have the service's code build objects with constructors of the script, by `Symbol.species`.
// Contained: it builds none.
// expect: value [{"value":[1,2]},[]]
const built = [];
for (const made of [Array, Promise, RegExp, Map, Set, ArrayBuffer, Object.getPrototypeOf(Uint8Array)]) {
  Object.defineProperty(made, Symbol.species, { get() { built.push(made.name); return made; }, configurable: true });
}
const result = await servers.fake.echo({ value: [1, 2] });
console.log(result);
progress(1);
await sleep(0);
return [result, built];
