// Attempt: to import modules of the engine, of other runtimes, of the network and of the disk.
// Contained: there are no modules.
// expect: value []
const reached = [];
for (const name of ['std', 'os', 'bjson', 'fs', 'node:fs', 'child_process', './x.js', '/etc/passwd', 'file:///etc/passwd',
  'data:text/javascript,export default 7', 'https://example.com/x.js', 'qjs:std', 'qjs:os', '', 'script.js', 'prelude.js']) {
  try {
    await import(name);
    reached.push(name);
  } catch (error) {
    if (!(error instanceof Error)) reached.push(String(error));
  }
}
try {
  await import('./x.json', { with: { type: 'json' } });
  reached.push('attributes');
} catch {}
try {
  await import({ toString() { throw new RangeError('a conversion'); } });
  reached.push('conversion');
} catch (error) {
  if (!(error instanceof RangeError)) reached.push(String(error));
}
return reached;
