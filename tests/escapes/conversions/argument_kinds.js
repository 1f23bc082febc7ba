// Attempt: to call a tool with arguments that are no object.
// Contained: the arguments are checked, and each call has an error or its result.
// expect: value ["ToolError","ToolError","ToolError","ToolError","ToolError","TypeError","TypeError"]
const outcomes = [];
for (const args of [null, 5, 'text', [1], true, Symbol('x'), () => {}]) {
  try {
    outcomes.push(await servers.fake.echo(args));
  } catch (error) {
    outcomes.push(error.name);
  }
}
return outcomes;
