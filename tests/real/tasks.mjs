// Tasks of real clients: calls whose results the client fetches later.
//
//     node tasks.mjs URL PLAN        PLAN is JSON
//
// tasks.py describes the plan and the report. The client uses version 1 of the SDK, which has the tasks of 2025-11-25.

import { randomBytes } from 'node:crypto';
import { sdk, textOf } from './sdk.mjs';

const DEADLINE_MS = 60_000;
const [url, plan] = [process.argv[2], JSON.parse(process.argv[3])];
const { name, client: create, transport, onRequest } = sdk('legacy', 1);
const errors = [];
const tasks = [];

async function client() {
  const value = randomBytes(6).toString('hex');
  const fill = text => text.replaceAll('{value}', value);
  const own = create({ elicitation: { form: {} } });
  onRequest(own, 'elicitation/create', () => ({ action: 'accept', content: { name: value } }));
  await own.connect(transport(new URL(url)));
  await own.listTools();
  const params = { name: plan.tool, arguments: JSON.parse(fill(JSON.stringify(plan.arguments))) };
  const options = { task: { ttl: DEADLINE_MS }, timeout: DEADLINE_MS };
  const seen = [];
  tasks.push(seen);
  for await (const message of own.experimental.tasks.callToolStream(params, undefined, options)) {
    if (message.task && seen.at(-1) !== message.task.status) seen.push(message.task.status);
    if (message.type === 'error') errors.push(`${message.error}`);
    if (message.type !== 'result') continue;
    const text = textOf(message.result);
    for (const wanted of [plan.expect, ...(plan.asks ? ['"name":"{value}"'] : [])].map(fill)) {
      if (!text.includes(wanted)) errors.push(`${wanted} is not in ${text}`);
    }
  }
  await own.close();
}

try {
  await Promise.all([client(), client()]);
} catch (error) {
  errors.push(`${error.stack}`);
}
if (tasks.filter(seen => seen.length > 0).length !== 2) errors.push('not every call was a task');
console.log(JSON.stringify({ sdk: name, tasks, errors }));
process.exit(errors.length === 0 ? 0 : 1);
