// Attempt: to confuse the service with names of servers and tools that are no names.
// Contained: each is an unknown server or tool.
// expect: value []
const wrong = [];
const names = ['', '__proto__', 'constructor', 'toJSON', 'then', '\0', '\ud800', 'a/b', '..', 'x'.repeat(100000), '"},{"', '\u2028', ' ', 'fake\n'];
for (const name of names) {
  for (const call of [() => servers.fake.call(name, {}), () => servers[name].call('echo', {}), () => servers.fake[name]({}), () => describeTool(name, name)]) {
    try {
      const result = await call();
      if (result !== null) wrong.push([name.slice(0, 20), result]);
    } catch (error) {
      if (!(error instanceof ToolError) && !(error instanceof TypeError && (name === 'then' || name === 'toJSON'))) wrong.push([name.slice(0, 20), String(error)]);
    }
  }
}
return wrong;
