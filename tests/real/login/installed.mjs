// The packages that tests/real/install has put into METAMCP_REAL_SERVERS, and helpers of the servers in this directory.

import { appendFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

export const require = createRequire(join(process.env.METAMCP_REAL_SERVERS ?? '.', 'npm', 'login.mjs'));

/** Serves HTTP at Unix sockets, and prints a line once it does. An earlier process may have left the sockets. */
export async function serve(...servers) {
  for (const [server, path] of servers) {
    rmSync(path, { force: true });
    await new Promise(resolve => server.listen(path, resolve));
  }
  console.log('ready');
}

/** Appends a value to a file, as one line of JSON. */
export function append(file, value) {
  appendFileSync(file, JSON.stringify(value) + '\n');
}
