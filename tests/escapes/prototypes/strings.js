// Attempt: to break the service's code with string methods that throw.
// Contained: names, output and results are as before.
// expect: value {"value":"text"}
for (const name of Object.getOwnPropertyNames(String.prototype)) {
  if (typeof String.prototype[name] === 'function') String.prototype[name] = () => { throw new Error(name); };
}
String.prototype[Symbol.iterator] = null;
globalThis.String = () => 'forged';
console.log('printed', { a: 1 });
progress(1, 2, 'a text');
return servers.fake.echo({ value: 'text' });
