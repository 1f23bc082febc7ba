// The official TypeScript SDKs, which tests/real/install has installed into METAMCP_REAL_SERVERS.
//
// Version 1 of the SDK, which most current clients use, has the eras "legacy" and, over HTTP with SSE, "sse".
// Version 2 is another implementation, with the eras "legacy", "modern" and "auto".

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const installed = join(process.env.METAMCP_REAL_SERVERS ?? '.', 'npm');
const require = createRequire(join(installed, 'client.mjs'));

/** Returns the functions that differ between the two versions of the SDK. */
export function sdk(era, version = era === 'legacy' || era === 'sse' ? 1 : 2) {
  const info = { name: 'metamcp-tests', version: '1' };
  if (version === 1) {
    const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
    const { SSEClientTransport } = require('@modelcontextprotocol/sdk/client/sse.js');
    const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const Transport = era === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
    const types = require('@modelcontextprotocol/sdk/types.js');
    const schemas = Object.values(types).filter(type => type?.shape?.method?.value !== undefined);
    const schema = method => schemas.find(type => type.shape.method.value === method);
    return {
      name: versionOf('@modelcontextprotocol/sdk'),
      client: (capabilities = {}) => new Client(info, { capabilities }),
      transport: url => new Transport(url),
      // Version 1 takes the schema of the result before the options.
      call: (client, params, options) => client.callTool(params, undefined, options),
      // One of its two transports has the protocol version in a private member.
      protocol: (_client, transport) => transport.protocolVersion ?? transport._protocolVersion,
      // It identifies methods by the schemas of their messages.
      onRequest: (client, method, answer) => client.setRequestHandler(schema(method), answer),
      onNotification: (client, method, take) => client.setNotificationHandler(schema(method), take),
    };
  }
  const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
  // "modern" uses "auto" too: a client that pins the version does not test the negotiation.
  const mode = era === 'legacy' ? 'legacy' : 'auto';
  return {
    name: versionOf('@modelcontextprotocol/client'),
    client: (capabilities = {}) => new Client(info, { capabilities, versionNegotiation: { mode } }),
    transport: url => new StreamableHTTPClientTransport(url),
    call: (client, params, options) => client.callTool(params, options),
    protocol: client => client.getNegotiatedProtocolVersion(),
    onRequest: (client, method, answer) => client.setRequestHandler(method, answer),
    onNotification: (client, method, take) => client.setNotificationHandler(method, take),
  };
}

/** Returns the name and the version of an installed package. */
export function versionOf(name) {
  const description = readFileSync(join(installed, 'node_modules', name, 'package.json'));
  return `typescript ${name} ${JSON.parse(description).version}`;
}

/** Returns the directory of an installed package. */
export const packageDirectory = name => join(installed, 'node_modules', name);

export const textOf = result =>
  result.content.filter(block => block.type === 'text').map(block => block.text).join('');
