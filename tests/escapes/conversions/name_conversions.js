// Attempt: to act, or to change its mind, while the name of a tool is converted to text.
// Contained: a name is converted once.
// expect: value [1,{"value":7},"TypeError"]
let n = 0;
const name = { [Symbol.toPrimitive]() { n += 1; return n === 1 ? 'echo' : 'exit'; } };
const result = await servers.fake.call(name, { value: 7 });
let outcome;
try {
  await servers.fake.call({ toString: null, valueOf: null }, {});
} catch (error) {
  outcome = error.name;
}
return [n, result, outcome];
