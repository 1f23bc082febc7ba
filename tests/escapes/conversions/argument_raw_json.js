// Attempt: to pass text as raw JSON that is no number, or a number beyond all bounds.
// Contained: text that is no JSON is refused, and the service and its servers read the rest.
// expect: value ["SyntaxError","SyntaxError",true]
const outcomes = [];
const raw = JSON.rawJSON ?? ((text) => JSON.parse(text));
for (const text of ['1}{', '{"a":1}{']) {
  try {
    raw(text);
    outcomes.push('made');
  } catch (error) {
    outcomes.push(error.name);
  }
}
const settled = await servers.fake.echo({ value: raw('1e400') }).then(() => true, (error) => error instanceof Error);
outcomes.push(settled);
return outcomes;
