// Attempt: to overflow the stack with calls that begin while the arguments of a call are read.
// Contained: the engine throws a RangeError.
// expect: value true
let deepest = 0;
const trap = { toJSON() { deepest += 1; servers.fake.echo(trap).catch(() => {}); return {}; } };
await servers.fake.echo(trap).catch(() => {});
return deepest > 10;
