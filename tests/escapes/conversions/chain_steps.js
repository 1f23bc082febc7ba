// Attempt: to confuse a chain with steps that are no steps.
// Contained: each chain fails with a typed error.
// expect: value []
const wrong = [];
for (const steps of [undefined, null, 'text', {}, [], [{}], [null], [[]], { length: 5 }, [{ tool_id: 'fake/echo', args: 'x' }], new Array(3)]) {
  try {
    wrong.push([typeof steps, await runChain(steps)]);
  } catch (error) {
    if (!(error instanceof ToolError)) wrong.push(String(error));
  }
}
return wrong;
