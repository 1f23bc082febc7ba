// Attempt: to break the service's code with array methods that throw.
// Contained: calls are as before.
// expect: value [1,2,3]
for (const name of Object.getOwnPropertyNames(Array.prototype)) {
  if (typeof Array.prototype[name] === 'function' && name !== 'constructor') Array.prototype[name] = () => { throw new Error(name); };
}
const one = servers.fake.echo({ value: 1 });
const two = servers.fake.call('echo', { value: 2 });
await sleep(1);
console.log('printed', one);
return [(await one).value, (await two).value, 3];
