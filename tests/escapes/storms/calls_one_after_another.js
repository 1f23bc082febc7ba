// Attempt: to call without end.
// Contained: the script fails at its limit of calls.
// expect: error limit_exceeded details.limit=tool_calls
// max_tool_calls: 10
for (;;) await servers.fake.echo({ value: 1 });
