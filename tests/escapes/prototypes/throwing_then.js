// Attempt: to throw while the service's code settles a call, with a `then` on all objects that throws.
// Contained: the exception is that of the call, and the next call works.
// expect: value ["a getter",7]
Object.defineProperty(Object.prototype, 'then', { get() { throw new RangeError('a getter'); }, configurable: true });
let message;
try {
  await servers.fake.echo({ value: 7 });
} catch (error) {
  message = error.message;
}
delete Object.prototype.then;
return [message, (await servers.fake.echo({ value: 7 })).value];
