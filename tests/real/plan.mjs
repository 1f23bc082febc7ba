// The plans that client.py explains, for all clients that run on Node.js.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Reads URL and PLAN from the command line of a script. */
export function readArguments(script) {
  const [url, plan] = process.argv.slice(2);
  if (plan === undefined) {
    console.error(`usage: ${script} URL PLAN`);
    process.exit(2);
  }
  return [url, JSON.parse(plan === '-' ? readFileSync(0, 'utf8') : plan)];
}

/** Returns the template with its placeholders replaced. */
export function fill(template, values) {
  if (Array.isArray(template)) return template.map(inner => fill(inner, values));
  if (template !== null && typeof template === 'object')
    return Object.fromEntries(Object.entries(template).map(([key, inner]) => [key, fill(inner, values)]));
  if (typeof template !== 'string') return template;
  for (const [name, value] of Object.entries(values)) {
    if (template === `{${name}}`) return value;
    template = template.replaceAll(`{${name}}`, value);
  }
  return template;
}

export function valuesOf(client, call) {
  return {
    value: `<${client}.${call}.${randomBytes(4).toString('hex')}>`,
    // All numbers have the same width, so that none is a prefix of another.
    number: 100_000 + client * 100 + call,
    steps: 2 + (client % 4),
  };
}

/** Returns the calls of a plan, each as often as its `times` says. */
export const callsOf = plan => (plan.calls ?? []).flatMap(call => Array(call.times ?? 1).fill(call));

/** Returns a barrier for `n` clients: each waits until all have arrived. */
export function barrier(n) {
  const { promise, resolve } = Promise.withResolvers();
  let missing = n;
  const arrive = () => {
    missing -= 1;
    if (missing === 0) resolve();
    return promise;
  };
  // If a client fails, the others must not wait for it.
  return { arrive, giveUp: resolve };
}
