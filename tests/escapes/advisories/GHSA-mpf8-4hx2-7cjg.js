// Attempt: vm2 before 3.11.0 (CVE-2026-44000). An object that a host promise resolved to kept its identity, so that the script
// could change the host's object.
// Contained: a result is a copy; changing it changes no later result.
// expect: value [false,{"value":{"n":1}}]
const args = { value: { n: 1 } };
const first = await servers.fake.echo(args);
const is_same = first.value === args.value;
first.value.n = 'changed';
Object.setPrototypeOf(first, null);
args.value.n = 1;
return [is_same, await servers.fake.echo(args)];
