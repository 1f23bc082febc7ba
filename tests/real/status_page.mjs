// Uses the status page of a service in a headless Chromium, step by step.
//
//     node status_page.mjs URL STEPS
//
// STEPS is a JSON array of objects, each with one of these members:
//   go          a path to open, with `width`, `dark` and `scripts` as further members
//   write       text for the focused element
//   press       a key: Enter or Tab. With `loads`, waits for the page that follows
//   until       an expression that must become true
//   evaluate    an expression; its value is a result
//   audit       true: the violations that axe-core finds are a result
//   unreached   true: the elements that Tab does not reach are a result
//   call        the `tool`, the `arguments`, the `token` and the `client` of a call to the service
//   screenshot  a file
// Prints {results, outside, errors}: `outside` has the requests to other origins, `errors` the errors of the page.
// METAMCP_REAL_SERVERS is as in inspector.mjs. CHROMIUM names the browser if it is not in /usr/bin.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const TIMEOUT_MS = 60_000;
const axe = join(process.env.METAMCP_REAL_SERVERS ?? '.', 'npm/node_modules/axe-core/axe.min.js');
const [url, steps] = process.argv.slice(2);
const { origin } = new URL(url);
const KEYS = { Enter: { keyCode: 13, text: '\r' }, Tab: { keyCode: 9 } };

/** The DevTools protocol on the pipe of a browser. */
class Browser {
  #last = 0;
  #waiting = new Map();
  #listeners = new Set();
  #received = '';

  constructor(profile) {
    const flags = [
      '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--hide-scrollbars',
      '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-quic',
      '--remote-debugging-pipe', `--user-data-dir=${profile}`, 'about:blank',
    ];
    // The browser gets its own process group, so that one signal ends all of its processes.
    this.process = spawn(CHROMIUM, flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'], detached: true });
    this.process.stdio[4].setEncoding('utf8').on('data', data => {
      const messages = (this.#received + data).split('\0');
      this.#received = messages.pop();
      messages.map(JSON.parse).forEach(message => this.#take(message));
    });
  }

  #take(message) {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.error) waiting?.reject(new Error(message.error.message));
    else waiting?.resolve(message.result);
    if (message.method) this.#listeners.forEach(listener => listener(message.method, message.params));
  }

  send(method, params = {}) {
    const id = ++this.#last;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId: this.session }) + '\0');
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  on(listener) {
    this.#listeners.add(listener);
  }

  /** Returns a promise of the next event of this name. */
  next(event) {
    return new Promise(resolve => {
      const listener = method => method === event && (this.#listeners.delete(listener), resolve());
      this.#listeners.add(listener);
    });
  }

  async evaluate(expression) {
    const params = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', params);
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description}`);
    return result.value;
  }

  async press(key) {
    const params = { key, code: key, windowsVirtualKeyCode: KEYS[key].keyCode, text: KEYS[key].text };
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', ...params });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...params });
  }
}

async function go(browser, { go: path, width = 1280, dark = false, scripts = true }) {
  const size = { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 };
  await browser.send('Emulation.setDeviceMetricsOverride', size);
  const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }];
  await browser.send('Emulation.setEmulatedMedia', { features });
  await browser.send('Emulation.setScriptExecutionDisabled', { value: !scripts });
  const loaded = browser.next('Page.loadEventFired');
  await browser.send('Page.navigate', { url: new URL(path, url).href });
  await loaded;
}

async function until(browser, expression) {
  for (const deadline = Date.now() + TIMEOUT_MS / 2; !(await browser.evaluate(expression)); ) {
    if (Date.now() > deadline) throw new Error(`never true: ${expression}; ${await browser.evaluate('document.body.innerText')}`);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}

async function audit(browser) {
  await browser.evaluate(readFileSync(axe, 'utf8'));
  const found = `axe.run(document).then(({ violations }) => violations.map(({ id, help, nodes }) =>
    id + ': ' + help + ': ' + nodes.map(node => node.html).join(' ').slice(0, 500)))`;
  return browser.evaluate(found);
}

/** Returns the elements that a person can use and that Tab does not reach. */
async function unreached(browser) {
  const all = 'a[href], input, button, summary, [tabindex="0"]';
  await browser.evaluate(`window.left = () => [...document.querySelectorAll('${all}')].filter(it => !seen.has(key(it)));
    window.key = it => it.outerHTML; window.seen = new Set(); document.activeElement.blur(); 0`);
  for (let n = await browser.evaluate('left().length'); n >= 0; n--) {
    await browser.press('Tab');
    await browser.evaluate('seen.add(key(document.activeElement)); 0');
  }
  return browser.evaluate('left().map(key)');
}

/** Calls a tool as a client of the service. */
async function call({ tool, arguments: args, token, client = 'page-test' }) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  if (token) headers.authorization = `Bearer ${token}`;
  const post = async message => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    const response = await fetch(new URL('/direct', url), { method: 'POST', headers, body });
    await response.text();
    return response;
  };
  const clientInfo = { name: client, version: client };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  headers['mcp-session-id'] = (await post({ id: 1, method: 'initialize', params })).headers.get('mcp-session-id');
  await post({ method: 'notifications/initialized' });
  await post({ id: 2, method: 'tools/list' });
  await post({ id: 3, method: 'tools/call', params: { name: tool, arguments: args } });
}

async function take(browser, step) {
  if (step.go) return go(browser, step);
  if (step.write) return browser.send('Input.insertText', { text: step.write });
  if (step.press) {
    const loaded = step.loads && browser.next('Page.loadEventFired');
    await browser.press(step.press);
    return loaded;
  }
  if (step.until) return until(browser, step.until);
  if (step.call) return call(step.call);
  if (step.screenshot) {
    const { data } = await browser.send('Page.captureScreenshot', { captureBeyondViewport: true });
    return writeFileSync(step.screenshot, Buffer.from(data, 'base64'));
  }
  if (step.evaluate) results.push(await browser.evaluate(step.evaluate));
  else if (step.audit) results.push(await audit(browser));
  else results.push(await unreached(browser));
}

const results = [];
const outside = [];
const errors = [];
const profile = mkdtempSync(join(tmpdir(), 'status-page-'));
const browser = new Browser(profile);
try {
  const { targetInfos } = await browser.send('Target.getTargets');
  const { targetId } = targetInfos.find(({ type }) => type === 'page');
  browser.session = (await browser.send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
  browser.on((method, params) => {
    if (method === 'Network.requestWillBeSent' && !params.request.url.startsWith('data:')) {
      if (new URL(params.request.url).origin !== origin) outside.push(params.request.url);
    }
    if (method === 'Runtime.exceptionThrown') errors.push(params.exceptionDetails.text);
    if (method === 'Page.javascriptDialogOpening') errors.push(`a dialog: ${params.message}`);
    // A refused login is a network error in the console. Advice is `verbose`.
    const { source, level, text } = params.entry ?? {};
    if (['error', 'warning'].includes(level) && source !== 'network') errors.push(text);
  });
  for (const domain of ['Page', 'Network', 'Runtime', 'Log']) await browser.send(`${domain}.enable`);
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not done within ${TIMEOUT_MS} ms`)), TIMEOUT_MS).unref();
  });
  const all = async () => {
    for (const step of JSON.parse(steps)) await take(browser, step);
  };
  await Promise.race([all(), late]);
  console.log(JSON.stringify({ results, outside, errors }));
} finally {
  if (browser.process.exitCode === null) {
    process.kill(-browser.process.pid, 'SIGKILL');
    await once(browser.process, 'exit');
  }
  rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
process.exit(0);
