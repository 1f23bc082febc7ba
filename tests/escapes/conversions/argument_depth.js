// Attempt: to crash a server or the service with arguments that are nested deeply.
// Contained: such a call fails, and no server gets it.
// expect: value ["ToolError","ToolError","RangeError",7]
const outcomes = [];
for (const depth of [127, 1000, 20000]) {
  let value = 1;
  for (let n = 0; n < depth; n++) value = [value];
  try {
    await servers.fake.echo({ value });
    outcomes.push('called');
  } catch (error) {
    outcomes.push(error.name);
  }
}
outcomes.push((await servers.fake.echo({ value: 7 })).value);
return outcomes;
