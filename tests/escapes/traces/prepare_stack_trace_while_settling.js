// Attempt: to get the function that settles calls, from a trace that is made while it runs.
// Contained: the engine calls no formatter of a script.
// expect: value []
const reached = [];
Error.prepareStackTrace = (error, frames) => { reached.push(...frames.map((frame) => frame.getFunction?.())); return ''; };
Object.defineProperty(Object.prototype, 'then', {
  get() { String(new Error().stack); return undefined; },
  configurable: true,
});
await servers.fake.echo({ value: 1 });
delete Object.prototype.then;
return reached.filter((made) => typeof made === 'function').map((made) => made.name);
