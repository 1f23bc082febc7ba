// A client of the official TypeScript SDK that starts `metamcp stdio` and makes a call. It makes another call for each
// line on standard input, which the test writes after a restart of the service. Arguments: version of the SDK, mode,
// command, its arguments.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';

const require = createRequire(join(process.env.METAMCP_REAL_SERVERS ?? '.', 'npm', 'client.mjs'));
const [version, mode, command, ...args] = process.argv.slice(2);
const info = { name: 'metamcp-tests', version: '1' };
const first = version === '1';
const { Client } = require(first ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
const { StdioClientTransport } = require(
  first ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio',
);
const client = new Client(info, first ? {} : { versionNegotiation: { mode } });
const failures = [];
client.onerror = error => failures.push(String(error));
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));

async function work(value) {
  const { tools } = await client.listTools();
  if (!tools.some(tool => tool.name === 'everything__echo')) throw new Error('no echo');
  const call = { name: 'everything__echo', arguments: { message: value } };
  const { content } = await client.callTool(call);
  if (content[0].text !== `Echo: ${value}`) throw new Error(JSON.stringify(content));
  console.log(value);
}

await work('one');
for await (const word of createInterface({ input: process.stdin })) await work(word);
await client.close();
if (failures.length > 0) throw new Error(failures.join('\n'));
