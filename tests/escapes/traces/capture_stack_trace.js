// Attempt: to write traces into objects of the host.
// Contained: they are frozen, and the script only changes its own.
// expect: value ["stack"]
const written = [];
for (const target of [console, ToolError, servers, servers.fake, sleep(0), Object.freeze({})]) {
  try { Error.captureStackTrace(target); } catch {}
  const own = target === servers || target === servers.fake ? [] : Reflect.ownKeys(target);
  written.push(...own.filter((key) => key === 'stack'));
}
return written;
