// Real clients of server-everything, each of which must receive only its own messages. The endpoint serves no others.
//
//     node features.mjs URL SCENARIO SDK
//
// features.py describes the scenarios and the report. SDK is the version of the SDK, 1 or 2.

import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { sdk, textOf } from './sdk.mjs';

const DEADLINE_MS = 60_000;
const LONG = 'trigger-long-running-operation';
const ALL_CAPABILITIES = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } };
const [url, scenario, version] = process.argv.slice(2);
const errors = [];
const unique = () => randomBytes(6).toString('hex');

function expect(holds, claim) {
  if (!holds) errors.push(typeof claim === 'function' ? claim() : claim);
}

/** One client and the messages that it received. */
class Participant {
  static sdk = sdk('legacy', Number(version));

  constructor(name, capabilities) {
    this.name = name;
    this.capabilities = capabilities;
    this.logs = [];
    this.updated = new Set();
    this.changes = 0;
    this.root = `file:///${name}/${unique()}`;
    this.asked = [];
    this.waiting = new Set();
  }

  async connect() {
    const { client, transport, onNotification, onRequest } = Participant.sdk;
    this.client = client(this.capabilities);
    this.transport = transport(new URL(url));
    const handle = (method, take) =>
      onNotification(this.client, `notifications/${method}`, notification => {
        take(notification.params);
        for (const check of this.waiting) check();
      });
    handle('message', params => this.logs.push(params));
    handle('resources/updated', params => this.updated.add(params.uri));
    handle('resources/list_changed', () => (this.changes += 1));
    if (this.capabilities) {
      onRequest(this.client, 'roots/list', () => ({ roots: [{ uri: this.root, name: this.name }] }));
      onRequest(this.client, 'elicitation/create', async () => {
        await this.allAreAsked();
        return { action: 'accept', content: { name: `name of ${this.name}` } };
      });
      onRequest(this.client, 'sampling/createMessage', async request => {
        this.asked.push(JSON.stringify(request.params.messages));
        await this.allAreAsked();
        const content = { type: 'text', text: `model of ${this.name}` };
        return { role: 'assistant', model: 'none', content, stopReason: 'endTurn' };
      });
    }
    await this.client.connect(this.transport);
    this.session = this.transport.sessionId;
  }

  async leave() {
    if (this.transport.sessionId) await this.transport.terminateSession();
    await this.client.close();
  }

  async call(tool, args = {}, options = undefined) {
    const result = await Participant.sdk.call(this.client, { name: tool, arguments: args }, options);
    const text = textOf(result);
    if (result.isError) throw new Error(`${this.name}: ${tool}: ${text}`);
    return text;
  }

  /** Waits until a condition holds. Checks it after each notification. */
  until(holds, what) {
    if (holds()) return;
    return new Promise((resolve, reject) => {
      const end = finish => {
        clearTimeout(timer);
        this.waiting.delete(check);
        finish();
      };
      const check = () => holds() && end(resolve);
      const late = () => end(() => reject(new Error(`${this.name}: ${what}`)));
      const timer = setTimeout(late, DEADLINE_MS);
      this.waiting.add(check);
    });
  }

  /** Has the server notify all clients of its connection that its resources have changed. */
  change() {
    const data = `data:text/plain,${this.name}`;
    const name = `${this.name}-${unique()}.gz`;
    return this.call('gzip-file-as-resource', { name, data, outputType: 'resourceLink' });
  }
}

const names = ['first', 'second', 'third'];
const each = (all, what) => Promise.all(all.map(what));

/** Waits until each client's stream is open: the client receives a change that its `actor` causes. */
async function listening(all, actor = client => client) {
  await each(all, async client => {
    const before = client.changes;
    const ends = performance.now() + DEADLINE_MS;
    while (client.changes === before && performance.now() < ends) await actor(client).change();
    expect(client.changes > before, `${client.name} receives no notification`);
  });
}

/** Waits until each client has received all earlier messages of the server. */
async function fence(all) {
  const before = all.map(client => client.changes);
  await all[0].change();
  await each(all, (client, at) => client.until(() => client.changes > before[at], 'no notice of a changed list'));
}

async function notices(all) {
  const [first, second, third] = all;
  await each(all, client => client.connect());
  await listening(all);

  // Both requests have the same id.
  const stop = new AbortController();
  const cancelled = first
    .call(LONG, { duration: 60, steps: 600 }, { signal: stop.signal, onprogress: () => stop.abort() })
    .then(() => 'answered', () => 'cancelled');
  const seen = [];
  const onprogress = ({ progress }) => seen.push(progress);
  const other = second.call(LONG, { duration: 1, steps: 5 }, { onprogress });
  expect((await cancelled) === 'cancelled', 'the cancelled call was answered');
  expect((await other).includes('Steps: 5.'), 'the other call was not answered');
  expect(`${seen}` === '1,2,3,4,5', () => `progress of the other call: ${seen}`);

  await first.client.setLoggingLevel('debug');
  await second.client.setLoggingLevel('emergency');
  const watched = `demo://resource/dynamic/text/${unique()}`;
  await third.client.subscribeResource({ uri: watched });
  const isAbout = ({ data }) => String(data).includes(watched);
  await first.until(() => first.logs.some(isAbout), 'no log message');
  await fence(all);
  for (const client of [second, third])
    expect(!client.logs.some(isAbout), `${client.name} received a log message for another client`);
  await first.call('toggle-simulated-logging');
  await first.until(() => first.logs.some(({ data }) => /[Ll]evel.message/.test(data)), 'no simulated log message');
  await first.call('toggle-simulated-logging');
  const low = second.logs.filter(({ level }) => level !== 'emergency');
  expect(low.length === 0, () => `log messages below the requested level: ${JSON.stringify(low)}`);

  const both = `demo://resource/dynamic/text/${unique()}`;
  const one = `demo://resource/dynamic/text/${unique()}`;
  await third.client.unsubscribeResource({ uri: watched });
  await each([first, second], client => client.client.subscribeResource({ uri: both }));
  await second.client.subscribeResource({ uri: one });
  const updates = async expected => {
    await third.call('toggle-subscriber-updates');
    await each(all, (client, at) =>
      client.until(() => expected[at].every(uri => client.updated.has(uri)), 'no update'));
    await third.call('toggle-subscriber-updates');
    await fence(all);
    all.forEach((client, at) => {
      expect(client.updated.size === expected[at].length, () => `${client.name}: updates of ${[...client.updated]}`);
      client.updated.clear();
    });
  };
  await updates([[both], [both, one], []]);
  await second.client.unsubscribeResource({ uri: both });
  await updates([[both], [one], []]);
}

async function questions(all) {
  const [first, second, plain] = all;
  const capable = [first, second];
  await each(all, client => client.connect());
  const lists = await each(all, async ({ client }) => (await client.listTools()).tools.map(tool => tool.name));
  expect(lists[2].length === 13, () => `tools without capabilities: ${lists[2]}`);
  for (const list of lists.slice(0, 2)) expect(list.length === 17, () => `tools with capabilities: ${list}`);
  const added = lists[0].filter(tool => !lists[2].includes(tool)).sort();
  expect(
    `${added}` === 'get-roots-list,trigger-elicitation-request,trigger-sampling-request,trigger-url-elicitation',
    () => `tools for capabilities: ${added}`,
  );
  // The server requests roots on the notification stream and not on the stream of a call.
  await listening(all);

  const roots = client => client.call('get-roots-list');
  const shown = await each(capable, roots);
  capable.forEach((client, at) => {
    expect(shown[at].includes(client.root) && shown[at].includes('(1 total)'), `${client.name}: ${shown[at]}`);
  });
  await each(capable, async client => {
    client.root = `file:///${client.name}/${unique()}`;
    await client.client.sendRootsListChanged();
    const ends = performance.now() + DEADLINE_MS;
    let text = '';
    while (!text.includes(client.root) && performance.now() < ends) text = await roots(client);
    expect(text.includes(client.root), `${client.name}, after a change: ${text}`);
  });

  const together = async (tool, args, answer) => {
    meet(capable);
    const texts = await each(capable, client => client.call(tool, args(client)));
    capable.forEach((client, at) => expect(texts[at].includes(answer(client)), `${client.name}: ${texts[at]}`));
  };
  await together('trigger-elicitation-request', () => ({}), client => `Name: name of ${client.name}`);
  const prompt = client => ({ prompt: `prompt of ${client.name}` });
  await together('trigger-sampling-request', prompt, client => `model of ${client.name}`);
  for (const client of capable)
    expect(
      client.asked.length === 1 && client.asked[0].includes(`prompt of ${client.name}`),
      () => `${client.name} was asked ${client.asked}`,
    );
}

/** Makes every client answer only after all clients have received their requests. */
function meet(all) {
  let missing = all.length;
  const { promise, resolve } = Promise.withResolvers();
  for (const client of all)
    client.allAreAsked = () => {
      missing -= 1;
      if (missing === 0) resolve();
      return promise;
    };
}

async function restart(all) {
  const [first, second] = all;
  await each(all, client => client.connect());
  await listening(all);
  await first.client.setLoggingLevel('debug');
  const watched = `demo://resource/dynamic/text/${unique()}`;
  await second.client.subscribeResource({ uri: watched });

  let isRestarted = false;
  const lines = createInterface({ input: process.stdin });
  lines.once('line', () => (isRestarted = true));
  const echo = client => client.call('echo', { message: client.name });
  // One call per client before the restart, and then calls until the restart is complete.
  await each(all, echo);
  console.log('ready');
  await each(all, async client => {
    const failed = [];
    while (!isRestarted) await echo(client).catch(error => failed.push(error));
    // Only the call in flight may fail. A call without a server waits for the server.
    expect(failed.length <= 1 && failed.every(error => error.code !== undefined), () => `${client.name}: ${failed}`);
  });
  lines.close();

  for (let turn = 0; turn < 5; turn += 1) await each(all, echo);
  for (const client of all) expect(client.transport.sessionId === client.session, `${client.name} has another session`);
  await listening(all);
  await first.call('toggle-simulated-logging');
  await first.until(() => first.logs.some(({ level }) => level !== undefined), 'no log message');
  await first.call('toggle-simulated-logging');
  await first.call('toggle-subscriber-updates');
  await second.until(() => second.updated.has(watched), 'the new server did not receive the subscription');
  await first.call('toggle-subscriber-updates');
}

const scenarios = { notices, questions, restart };
if (!(scenario in scenarios) || version === undefined) {
  console.error('usage: features.mjs URL SCENARIO SDK');
  process.exit(2);
}
const all = names.map((name, at) =>
  new Participant(name, scenario === 'questions' && at < 2 ? ALL_CAPABILITIES : undefined));
try {
  await scenarios[scenario](all);
  await each(all, client => client.leave());
} catch (error) {
  errors.push(`${error.stack}`);
}
console.log(JSON.stringify({ sdk: Participant.sdk.name, errors }));
process.exit(errors.length === 0 ? 0 : 1);
