// Attempt: to wait forever after calls that have ended.
// Contained: the script fails once no call is left.
// expect: error script_failed details.kind=stuck
servers.fake.echo({ value: 1 });
servers.fake.echo({ value: 2 });
await new Promise(() => {});
