// Many concurrent real clients: the official TypeScript SDKs against one streamable HTTP endpoint.
//
//     node client.mjs URL PLAN        PLAN is JSON, or "-" for standard input
//
// METAMCP_REAL_SERVERS names the directory that tests/real/install filled. client.py describes the plan and the
// report. The eras "legacy" and "sse" run version 1 of the SDK, and the others version 2, unless the plan has
// {sdk: 1} or {sdk: 2}.

import { barrier, callsOf, fill, readArguments, valuesOf } from './plan.mjs';
import { sdk, textOf } from './sdk.mjs';

/** Returns all items of a paginated list. */
async function allPages(listPage, items) {
  const found = [];
  let cursor;
  do {
    const page = await listPage(cursor === undefined ? undefined : { cursor });
    found.push(...items(page));
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

class Run {
  constructor(url, plan) {
    this.url = new URL(url);
    this.plan = plan;
    this.era = plan.era ?? 'auto';
    this.sdk = sdk(this.era, plan.sdk);
    this.clients = plan.clients ?? 1;
    this.errors = [];
    this.calls = 0;
    this.tools = new Set();
    this.protocols = new Set();
    this.resources = null;
    this.prompts = null;
    this.connected = barrier(this.clients);
    // One barrier for each elicitation: no client answers before all clients have received theirs.
    this.asked = (plan.asks ?? []).map(() => barrier(this.clients));
  }

  expect(holds, client, claim) {
    if (!holds) this.errors.push(`client ${client}: ${claim}`);
  }

  /** Runs one client from connection to disconnection. Returns whether it succeeded. */
  async client(number) {
    const mine = error => error.startsWith(`client ${number}:`);
    const asks = this.plan.asks ?? [];
    const client = this.sdk.client(asks.length > 0 ? { elicitation: { form: {} } } : {});
    const transport = this.sdk.transport(this.url);
    try {
      await client.connect(transport);
      await this.connected.arrive();
      this.checkEra(number, this.sdk.protocol(client, transport));
      await this.lists(number, client);
      await this.makeCalls(number, client);
      await this.progress(number, client);
      for (const turn of asks.keys()) await this.isAsked(number, turn, client);
      // End the session, as a client should. A modern connection has none.
      if (transport.sessionId) await transport.terminateSession();
    } catch (error) {
      this.errors.push(`client ${number}: ${error.name}: ${error.message}`);
      for (const barrier of [this.connected, ...this.asked]) barrier.giveUp();
    } finally {
      await client.close();
    }
    return !this.errors.some(mine);
  }

  checkEra(number, protocol) {
    this.protocols.add(protocol);
    const modern = protocol >= '2026-07-28';
    this.expect(
      this.era === 'auto' || modern === (this.era === 'modern'),
      number,
      `asked for ${this.era}, negotiated ${protocol}`,
    );
  }

  async lists(number, client) {
    const names = await allPages(cursor => client.listTools(cursor), page => page.tools.map(tool => tool.name));
    names.sort();
    this.tools.add(JSON.stringify(names));
    for (const name of this.plan.tools ?? [])
      this.expect(names.includes(name), number, `${name} is not among the tools ${names}`);
    if (this.plan.resources) {
      const found = await allPages(cursor => client.listResources(cursor), page => page.resources);
      this.resources = found.length;
      this.expect(found.length > 0, number, 'no resources');
    }
    if (this.plan.prompts) {
      const found = await allPages(cursor => client.listPrompts(cursor), page => page.prompts);
      this.prompts = found.length;
      this.expect(found.length > 0, number, 'no prompts');
    }
  }

  async makeCalls(number, client) {
    await Promise.all(callsOf(this.plan).map((call, turn) => this.oneCall(number, turn, call, client)));
  }

  async oneCall(number, turn, call, client) {
    const { tool, arguments: args = {}, expect } = fill(call, valuesOf(number, turn));
    const result = await this.sdk.call(client, { name: tool, arguments: args });
    this.calls += 1;
    const text = textOf(result);
    const answered = !result.isError && text.includes(String(expect));
    this.expect(answered, number, `call ${turn} of ${tool}: expected '${expect}', got '${text}'`);
  }

  async progress(number, client) {
    if (!this.plan.progress) return;
    const { tool, arguments: args = {}, total, first = [] } = fill(this.plan.progress, valuesOf(number, 0));
    const wanted = JSON.stringify([...first, ...[...Array(total).keys()].map(step => [step + 1, total])]);
    const seen = [];
    const onprogress = ({ progress, total }) => seen.push([progress, total]);
    const result = await this.sdk.call(client, { name: tool, arguments: args }, { onprogress });
    this.calls += 1;
    this.expect(!result.isError, number, `the call with progress failed: '${textOf(result)}'`);
    // Progress must arrive before the answer: this SDK forgets the token with the request.
    const got = JSON.stringify(seen);
    this.expect(got === wanted, number, `progress: expected ${wanted}, got ${got}`);
  }

  async isAsked(number, turn, client) {
    const values = valuesOf(number, turn);
    const { tool, arguments: args = {}, expect } = fill(this.plan.asks[turn], values);
    this.sdk.onRequest(client, 'elicitation/create', async () => {
      await this.asked[turn].arrive();
      return { action: 'accept', content: { name: values.value } };
    });
    const result = await this.sdk.call(client, { name: tool, arguments: args });
    this.calls += 1;
    const text = textOf(result);
    const answered = !result.isError && text.includes(expect);
    this.expect(answered, number, `asked by ${tool}: expected '${expect}', got '${text}'`);
  }

  async all() {
    const started = performance.now();
    const seconds = this.plan.timeout ?? 60;
    const late = new Promise(resolve => setTimeout(resolve, seconds * 1000, 'late').unref());
    const clients = Promise.all([...Array(this.clients).keys()].map(number => this.client(number)));
    let ok = await Promise.race([clients, late]);
    if (ok === 'late') {
      this.errors.push('not done in time');
      ok = [];
    }
    if (this.tools.size > 1) this.errors.push(`clients were shown ${this.tools.size} different lists of tools`);
    return {
      sdk: this.sdk.name,
      clients: this.clients,
      ok: ok.filter(Boolean).length,
      errors: this.errors,
      protocols: [...this.protocols].sort(),
      calls: this.calls,
      tools: JSON.parse([...this.tools][0] ?? '[]'),
      resources: this.resources,
      prompts: this.prompts,
      seconds: Math.round(performance.now() - started) / 1000,
    };
  }
}

const report = await new Run(...readArguments('client.mjs')).all();
console.log(JSON.stringify(report));
// Exit explicitly: the open stream of an abandoned client would keep the process alive.
process.exit(report.errors.length === 0 && report.ok === report.clients ? 0 : 1);
