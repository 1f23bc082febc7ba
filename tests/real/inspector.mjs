// Many concurrent real clients: the command line of the MCP Inspector against one streamable HTTP endpoint.
//
//     node inspector.mjs URL PLAN        PLAN is JSON, or "-" for standard input
//
// METAMCP_REAL_SERVERS names the directory that tests/real/install filled. client.py describes the plan and the
// report. Each list and each call is its own process, which connects and disconnects. The clients run at the same
// time, and the processes of one client one after the other. The Inspector supports neither progress nor elicitation.

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
// A temporary home, so that the Inspector neither reads nor writes the user's settings.
const home = mkdtempSync(join(tmpdir(), 'inspector-'));

/** Runs one method and returns what the Inspector prints about it. */
function inspect(method, ...more) {
  const server = ['--cli', '--server-url', url, '--transport', 'http', '--protocol-era', era];
  const args = [program, ...server, '--method', method, ...more, '--format', 'json', '--quiet'];
  const env = { HOME: home, PATH: process.env.PATH, MCP_INSPECTOR_SECRET_STORE: 'memory' };
  const timeout = (plan.timeout ?? 60) * 1000;
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { env, timeout, maxBuffer: 2 ** 24 }, (error, stdout, stderr) => {
      // The Inspector also fails if a tool reports an error. Its standard output then has the reason.
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

/** Runs one client. Returns whether it succeeded. */
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

for (const key of ['progress', 'asks']) if (plan[key]) errors.push(`the Inspector does not support ${key}`);
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
