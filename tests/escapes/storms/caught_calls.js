// Attempt: to call without end, by catching the failures of calls beyond the limit.
// Contained: the script ends at its time limit, or at the most operations that a script has.
// expect: error timeout details.limit=timeout_ms
// max_tool_calls: 1
// timeout_ms: 300
for (;;) await servers.fake.echo({ value: 1 }).catch(() => {});
