// Runs a script in a page of a headless Chromium, for page.mjs and host.mjs.
//
// METAMCP_REAL_SERVERS is as in inspector.mjs. CHROMIUM names the browser if it is not in /usr/bin.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const TIMEOUT_MS = 60_000;
const installed = join(process.env.METAMCP_REAL_SERVERS ?? '.', 'npm');

/**
 * Shows a page at `origin`, such as http://chat.example, in a browser that resolves that name to this host. The
 * default export of the module `script` is an asynchronous function of `input`. Prints its result as JSON, or {error}.
 */
export async function run(origin, script, input) {
  // The bundler finds the packages from this directory.
  mkdirSync(join(installed, 'pages'), { recursive: true });
  const directory = mkdtempSync(join(installed, 'pages', 'page-'));
  let browser;
  try {
    const { server, result } = await serve(await bundle(directory, script, input));
    const { hostname, port } = new URL(origin);
    const rules = `MAP ${hostname}:${port || 80} 127.0.0.1:${server.address().port}`;
    browser = spawn(
      CHROMIUM,
      [
        '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
        '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-quic',
        `--host-resolver-rules=${rules}`, `--user-data-dir=${join(directory, 'profile')}`, origin,
      ],
      // The browser gets its own process group, so that one signal ends all of its processes.
      { stdio: ['ignore', 'ignore', 'pipe'], detached: true },
    );
    const complaints = text(browser.stderr);
    const ended = once(browser, 'exit').then(async () => ({ error: `the browser exited: ${await complaints}` }));
    const late = new Promise(resolve => {
      setTimeout(() => resolve({ error: `no result within ${TIMEOUT_MS} ms` }), TIMEOUT_MS).unref();
    });
    console.log(JSON.stringify(await Promise.race([result, ended, late])));
    server.close();
    server.closeAllConnections();
  } finally {
    if (browser?.exitCode === null) {
      process.kill(-browser.pid, 'SIGKILL');
      await once(browser, 'exit');
    }
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
  process.exit(0);
}

/** Returns the script of the page and its imports as one bundle. */
async function bundle(directory, script, input) {
  const vite = createRequire(join(installed, 'page.mjs')).resolve('vite');
  const { build } = await import(pathToFileURL(vite));
  writeFileSync(join(directory, 'script.js'), script);
  const entry = join(directory, 'page.js');
  writeFileSync(
    entry,
    `import run from './script.js';
    const done = await run(${JSON.stringify(input)}).catch(error => ({ error: String(error) }));
    await fetch('/done', { method: 'POST', body: JSON.stringify(done) });`,
  );
  const [{ output }] = [
    await build({
      root: directory,
      configFile: false,
      logLevel: 'error',
      build: { write: false, minify: false, target: 'esnext', lib: { entry, formats: ['es'], fileName: 'page' } },
    }),
  ].flat();
  return output[0].code;
}

/** Serves the page, and returns the server and a promise of the result that the page sends. */
async function serve(code) {
  const { promise, resolve } = Promise.withResolvers?.() ?? deferred();
  const server = createServer(async (request, response) => {
    if (request.url === '/done') {
      resolve(JSON.parse(await text(request)));
      response.end();
      return;
    }
    const isScript = request.url === '/page.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? code : '<!doctype html><body><script type="module" src="/page.js"></script>');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { server, result: promise };
}

function deferred() {
  let resolve;
  const promise = new Promise(resolved => (resolve = resolved));
  return { promise, resolve };
}
