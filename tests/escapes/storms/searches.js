// Attempt: to keep the search of the service busy.
// Contained: searches count as calls.
// expect: error limit_exceeded details.limit=tool_calls
// max_tool_calls: 20
await Promise.all(Array.from({ length: 1000 }, (_, n) => searchTools(`${n} `.repeat(2000))));
