// Attempt: to exhaust the engine with the result of a tool, which is larger than its memory once it is read.
// Contained: only that call fails, and the script goes on.
// expect: value ["limit_exceeded",7]
const outcomes = [];
try {
  const { value } = await servers.fake.echo({ value: new Array(200000).fill([]) });
  outcomes.push(value.length);
} catch (error) {
  outcomes.push(error.code);
}
outcomes.push((await servers.fake.echo({ value: 7 })).value);
return outcomes;
