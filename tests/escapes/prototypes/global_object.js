// Attempt: to intercept the service's code with another prototype of the global object, and with frozen globals.
// Contained: it reads no globals.
// expect: value {"value":7}
Object.setPrototypeOf(globalThis, new Proxy({}, { get() { throw new Error('intercepted'); }, has() { return true; } }));
Object.freeze(globalThis);
return servers.fake.echo({ value: 7 });
