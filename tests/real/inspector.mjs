// Many real clients at once: the command line of the MCP Inspector against one streamable HTTP endpoint.
//
//     node inspector.mjs URL PLAN        PLAN is JSON, or "-" for standard input
//
// METAMCP_REAL_SERVERS names the directory that tests/real/install filled. The plan and the report are those of
// client.py, where they are explained. Every list and every call is a process of its own, which connects and
// leaves: one after the other for each client, the clients at the same time. It shows no progress and cannot be
// asked anything.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { callsOf, fill, readArguments, valuesOf } from './plan.mjs';
import { packageDirectory, textOf, versionOf } from './sdk.mjs';

const PACKAGE = '@modelcontextprotocol/inspector';
const program = join(packageDirectory(PACKAGE), 'clients/launcher/build/index.js');
const [url, plan] = readArguments('inspector.mjs');
const era = plan.era ?? 'auto';
const clients = plan.clients ?? 1;
const errors = [];
const protocols = new Set();
const lists = new Set();
let calls = 0;
// No user's settings take part, and none are left behind.
const home = mkdtempSync(join(tmpdir(), 'inspector-'));

/** Runs one method and returns what the Inspector prints about it. */
function inspect(method, ...more) {
  const server = ['--cli', '--server-url', url, '--transport', 'http', '--protocol-era', era];
  const args = [program, ...server, '--method', method, ...more, '--format', 'json', '--quiet'];
  const env = { HOME: home, PATH: process.env.PATH, MCP_INSPECTOR_SECRET_STORE: 'memory' };
  const timeout = (plan.timeout ?? 60) * 1000;
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { env, timeout, maxBuffer: 2 ** 24 }, (error, stdout, stderr) => {
      // A tool that reports an error makes it fail too, and says why on standard output.
      if (error) reject(new Error(`${method} ${more.join(' ')}: ${stderr.trim()} ${stdout.trim()}`));
      else resolve(JSON.parse(stdout).result);
    }).stdin.end();
  });
}

function expect(holds, number, claim) {
  if (!holds) errors.push(`client ${number}: ${claim}`);
}

async function connects(number) {
  const { protocolVersion } = await inspect('initialize');
  protocols.add(protocolVersion);
  const isModern = protocolVersion >= '2026-07-28';
  expect(era === 'auto' || isModern === (era === 'modern'), number, `asked for ${era}, negotiated ${protocolVersion}`);
}

async function listsTools(number) {
  const names = (await inspect('tools/list')).tools.map(tool => tool.name).sort();
  lists.add(JSON.stringify(names));
  for (const name of plan.tools ?? []) expect(names.includes(name), number, `${name} is not among the tools ${names}`);
}

async function listsSome(number, what) {
  const found = (await inspect(`${what}/list`))[what];
  expect(found.length > 0, number, `no ${what}`);
}

async function callsTool(number, turn, call) {
  const { tool, arguments: args = {}, expect: wanted } = fill(call, valuesOf(number, turn));
  const result = await inspect('tools/call', '--tool-name', tool, '--tool-args-json', JSON.stringify(args));
  calls += 1;
  const text = textOf(result);
  expect(text.includes(String(wanted)), number, `call ${turn} of ${tool}: expected '${wanted}', got '${text}'`);
}

/** One client; true if all was well. */
async function client(number) {
  try {
    await connects(number);
    await listsTools(number);
    for (const what of ['resources', 'prompts']) if (plan[what]) await listsSome(number, what);
    for (const [turn, call] of callsOf(plan).entries()) await callsTool(number, turn, call);
  } catch (error) {
    errors.push(`client ${number}: ${error.message}`);
  }
  return !errors.some(error => error.startsWith(`client ${number}:`));
}

for (const key of ['progress', 'asks']) if (plan[key]) errors.push(`the Inspector knows no ${key}`);
const started = performance.now();
const ok = await Promise.all([...Array(clients).keys()].map(client));
rmSync(home, { recursive: true });
if (lists.size > 1) errors.push(`clients were shown ${lists.size} different lists of tools`);
const report = {
  sdk: versionOf(PACKAGE),
  clients,
  ok: ok.filter(Boolean).length,
  errors,
  protocols: [...protocols].sort(),
  calls,
  tools: JSON.parse([...lists][0] ?? '[]'),
  seconds: Math.round(performance.now() - started) / 1000,
};
console.log(JSON.stringify(report));
process.exit(errors.length === 0 && report.ok === clients ? 0 : 1);
