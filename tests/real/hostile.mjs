// An MCP server over stdio all of whose names and texts try to be markup on the status page.
//
//     node hostile.mjs

import { createInterface } from 'node:readline';

const text = `"'><img src=x onerror="window.pwned=1"><script>window.pwned=1</script></script></style>\u202e\n\nevent: section\ndata: {}`;
const tool = {
  name: 'attack',
  title: text,
  description: text,
  inputSchema: { type: 'object', title: text, properties: { [text]: { type: 'string', description: text } } },
};
const answers = {
  initialize: () => ({
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: text, title: text, version: text },
    instructions: text,
  }),
  'tools/list': () => ({ tools: [tool, { ...tool, name: text }] }),
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method] ? { result: answers[method]() } : { error: { code: -32000, message: text } };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
}
