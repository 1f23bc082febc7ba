// Attempt: to give arguments that are no plain data, by their `toJSON`.
// Contained: such a call fails with a TypeError, and none reaches a server.
// expect: value ["TypeError","TypeError","TypeError","RangeError","TypeError"]
const outcomes = [];
for (const args of [
  { toJSON: () => undefined }, { toJSON: () => () => {} }, { toJSON: () => 1n }, { toJSON() { throw new RangeError(); } }, { value: 1n },
]) {
  try {
    await servers.fake.echo(args);
    outcomes.push('called');
  } catch (error) {
    outcomes.push(error.name);
  }
}
return outcomes;
