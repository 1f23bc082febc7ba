// Attempt: to find any function, from the global object on, that makes a function from a string.
// Contained: none does, among all objects that a script can reach.
// expect: value []
const reached = [];
const seen = new Set();
const waiting = [globalThis, servers.fake.echo, await servers.fake.echo({ value: [1] }), sleep(0), /x/, 'x', 1n, Symbol.iterator, function* () {}, async function* () {}, async () => {}];
const push = (value) => {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function') || seen.has(value)) return;
  seen.add(value);
  waiting.push(value);
};
while (waiting.length > 0) {
  const value = Object(waiting.pop());
  if (value === servers) continue;
  push(Object.getPrototypeOf(value));
  for (const key of Reflect.ownKeys(value)) {
    const found = Object.getOwnPropertyDescriptor(value, key);
    push(found.value);
    push(found.get);
    push(found.set);
  }
  if (typeof value !== 'function' || [progress, searchTools, describeTool, runChain, sleep].includes(value)) continue;
  if (Object.values(console).includes(value)) continue;
  for (const make of [() => value('return 7'), () => new value('return 7'), () => value.call({}, 'return 7')]) {
    try {
      const made = make();
      if (typeof made === 'function' && made() === 7) reached.push(value.name);
    } catch {}
  }
}
if (seen.size < 500) reached.push(`only ${seen.size} objects`);
return reached;
