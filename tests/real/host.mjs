// A host of MCP Apps in a real browser: it calls tools and shows their results in the pages of their servers.
//
//     node host.mjs ORIGIN URL STEPS
//
// The page at ORIGIN runs version 2 of the TypeScript SDK and the bridge of the MCP Apps SDK, and connects to URL.
// STEPS is JSON: [{tool, click, until, find}]. For each step, the host opens the page of TOOL in a frame, calls TOOL
// and sends the result to the page. It clicks on the element CLICK, if given. It then waits until the page shows the
// regular expression UNTIL, in which {text} stands for the text of the result. Prints {tools, pages} or {error} as
// JSON. Each page has {uri, found, calls}: `found` is whether it has an element FIND, and `calls` are the tools that
// it called. The environment is as in browser.mjs.

import { run } from './browser.mjs';

const [origin, url, steps] = process.argv.slice(2);
const script = `
  import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
  import {
    AppBridge, PostMessageTransport, RESOURCE_MIME_TYPE, getToolUiResourceUri,
  } from '@modelcontextprotocol/ext-apps/app-bridge';

  const INFO = { name: 'host', version: '1' };
  const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: [RESOURCE_MIME_TYPE] } };

  export default async function ({ url, steps }) {
    const client = new Client(INFO, { capabilities: { extensions } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const { tools } = await client.listTools();
    const pages = [];
    for (const step of steps) {
      pages.push(await show(client, tools.find(tool => tool.name === step.tool), step));
    }
    return { tools: tools.map(tool => tool.name), pages };
  }

  async function show(client, tool, { click, until, find }) {
    const uri = getToolUiResourceUri(tool);
    const { contents: [content] } = await client.readResource({ uri });
    if (content.uri !== uri || content.mimeType !== RESOURCE_MIME_TYPE) throw new Error(JSON.stringify(content));
    const frame = document.body.appendChild(document.createElement('iframe'));
    // The page has the permissions that a real host gives it. The same origin lets this test read it.
    frame.sandbox = 'allow-scripts allow-same-origin';
    const calls = [];
    // The bridge sends the calls of the page to this proxy, which records them.
    const recorder = new Proxy(client, {
      get(target, name) {
        const member = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...given) => {
          if (name === 'callTool') calls.push(given[0].name);
          if (name === 'request' && given[0].method === 'tools/call') calls.push(given[0].params.name);
          return member.apply(target, given);
        };
      },
    });
    const bridge = new AppBridge(recorder, INFO, { serverTools: {}, serverResources: {}, openLinks: {}, logging: {} });
    const isReady = new Promise(resolve => bridge.addEventListener('initialized', resolve));
    await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
    frame.srcdoc = content.text;
    await isReady;
    await bridge.sendToolInput({ arguments: {} });
    const result = await client.callTool({ name: tool.name, arguments: {} });
    await bridge.sendToolResult(result);
    const { contentDocument: page } = frame;
    if (click) page.querySelector(click).click();
    const wanted = new RegExp(until.replace('{text}', () => RegExp.escape?.(result.content[0].text) ?? result.content[0].text));
    while (!wanted.test(page.body.innerText)) {
      await new Promise(resolve => setTimeout(resolve, 20));
    }
    const shown = { uri, found: page.querySelector(find) !== null, calls };
    frame.remove();
    return shown;
  }
`;
await run(origin, script, { url, steps: JSON.parse(steps) });
