// Attempt: to exhaust the service with calls beyond the limit, all at once.
// Contained: those beyond the limit fail, and the failure names the limit.
// expect: error limit_exceeded details.limit=tool_calls
// max_tool_calls: 5
const calls = [];
for (let n = 0; n < 4000; n++) calls.push(servers.fake.echo({ value: n }));
await Promise.all(calls);
