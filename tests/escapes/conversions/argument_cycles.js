// Attempt: to call a tool with arguments that contain themselves.
// Contained: the call fails with a TypeError.
// expect: value "TypeError"
const args = { value: [] };
args.value.push(args);
try {
  return await servers.fake.echo(args);
} catch (error) {
  return error.name;
}
