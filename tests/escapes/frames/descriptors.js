// Attempt: to read or to write the pipe itself.
// Contained: nothing in a script's world has descriptors.
// expect: value []
const reached = [];
for (const name of ['_stdout', '_stderr', 'fd', 'stdout', 'out', '__proto__', 'Console', 'memory', '_times']) {
  if (console[name] !== undefined && name !== '__proto__') reached.push(name);
}
for (const made of [console, servers, console.log, sleep]) {
  for (const key of Reflect.ownKeys(made)) {
    if (!['debug', 'error', 'info', 'log', 'warn', 'length', 'name'].includes(key)) reached.push(String(key));
  }
}
return reached;
