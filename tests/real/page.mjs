// A page in a real browser that is a client of an MCP server on another origin.
//
//     node page.mjs ORIGIN URL TOKEN TOOL ARGUMENTS
//
// The page at ORIGIN runs version 1 of the TypeScript SDK, connects to URL, lists the tools and calls TOOL. The script
// prints {tools, text, session} or {error} as JSON. The environment is as in browser.mjs.

import { run } from './browser.mjs';

const [origin, url, token, tool, args] = process.argv.slice(2);
const script = `
  import { Client } from '@modelcontextprotocol/sdk/client/index.js';
  import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

  export default async function ({ url, token, tool, args }) {
    const headers = token ? { Authorization: 'Bearer ' + token } : {};
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
    const client = new Client({ name: 'page', version: '1' });
    await client.connect(transport);
    const { tools } = await client.listTools();
    const result = await client.callTool({ name: tool, arguments: JSON.parse(args) });
    const session = transport.sessionId;
    await transport.terminateSession();
    return { tools: tools.map(tool => tool.name), text: result.content[0].text, session };
  }
`;
await run(origin, script, { url, token, tool, args });
