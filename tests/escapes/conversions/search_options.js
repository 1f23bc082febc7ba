// Attempt: to confuse a search with options and queries that throw, lie or are no object.
// Contained: the options are read once, and a wrong one is an error of the call or the script's own exception.
// expect: value ["array","array","array","ToolError","a getter","a conversion"]
const outcomes = [];
for (const [query, options] of [
  ['echo', null], ['echo', 'text'.slice(4)], [Symbol('x'), {}], ['echo', { detail: 'everything' }],
  ['echo', { get detail() { throw new Error('a getter'); } }], [{ toString() { throw new Error('a conversion'); } }, {}],
]) {
  try {
    const found = await searchTools(query, options);
    outcomes.push(Array.isArray(found) ? 'array' : typeof found);
  } catch (error) {
    outcomes.push(error instanceof ToolError ? error.name : error.message);
  }
}
return outcomes;
