// Attempt: to exhaust the service with calls that wait for their turn, and whose arguments are large together.
// Contained: the script ends at the memory for calls that wait.
// expect: error limit_exceeded details.limit=arguments
for (let n = 0; n < 16; n++) servers.fake.hold({ key: `${n}` });
const value = 'x'.repeat(3 << 20);
for (let n = 0; n < 12; n++) servers.fake.echo({ value });
await sleep(10000);
