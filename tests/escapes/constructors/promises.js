// Attempt: to make code from a string with the constructors of the promises of the host.
// Contained: they are promises of the script's own world.
// expect: value []
const reached = [];
const promises = [
  servers.fake.echo({ value: 1 }), sleep(0), searchTools('echo'), describeTool('fake', 'echo'),
  runChain([{ tool_id: 'fake/echo', args: { value: 1 } }]), (async () => {})(),
];
for (const promise of promises) {
  if (Object.getPrototypeOf(promise) !== Promise.prototype) reached.push('another prototype');
  for (const part of [promise, promise.then, promise.finally, promise.constructor, promise.constructor[Symbol.species]]) {
    try {
      part.constructor.constructor('return globalThis')();
      reached.push('code');
    } catch (error) {
      if (!(error instanceof EvalError)) reached.push(String(error));
    }
  }
}
await Promise.allSettled(promises);
return reached;
