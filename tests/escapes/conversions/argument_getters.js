// Attempt: to act while the arguments of a call are read, with calls inside of getters.
// Contained: the inner call begins first, and both have their own results.
// expect: value ["outer","inner"]
const calls = [];
const args = { get value() { calls.push(servers.fake.echo({ value: 'inner' })); return 'outer'; } };
const outer = await servers.fake.echo(args);
return [outer.value, (await calls[0]).value];
