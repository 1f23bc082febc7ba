// Attempt: to confuse a call with proxies whose traps lie, throw or are revoked.
// Contained: the call has the data that they show, or fails.
// expect: value [["a","b"],"a trap","TypeError"]
const outcomes = [];
const lying = new Proxy({}, {
  ownKeys: () => ['value'],
  getOwnPropertyDescriptor: () => ({ value: 'never read', enumerable: true, configurable: true }),
  get: (_, key) => (key === 'value' ? ['a', 'b'] : undefined),
});
outcomes.push((await servers.fake.echo(lying)).value);
const throwing = new Proxy({}, { ownKeys() { throw new Error('a trap'); } });
await servers.fake.echo(throwing).catch((error) => outcomes.push(error.message));
const { proxy, revoke } = Proxy.revocable({}, {});
revoke();
await servers.fake.echo(proxy).catch((error) => outcomes.push(error.name));
return outcomes;
