// A real MCP server that wants a token: version 1 of the TypeScript SDK with its `requireBearerAuth`, behind nginx.
//
//     node resource-server.mjs DIR ISSUER RESOURCE...
//
// The server is each RESOURCE, which nginx names in a header. It listens at DIR/resource-server.sock, and appends each
// call of a tool with the id of its token to DIR/calls, as a line of JSON. Its tools: `echo`, `slow`, which takes time, and
// `administer`, which wants the further scope `mcp:admin`.

import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { append, require, serve } from './installed.mjs';

const [dir, issuer, ...resources] = process.argv.slice(2);
const express = require('express');
const { createRemoteJWKSet, jwtVerify } = require('jose');
const { z } = require('zod');
const { InvalidTokenError } = require('@modelcontextprotocol/sdk/server/auth/errors.js');
const { requireBearerAuth } = require('@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js');
const { McpServer } = require('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = require('@modelcontextprotocol/sdk/server/streamableHttp.js');

const PATH = '/mcp';
const METADATA = `/.well-known/oauth-protected-resource${PATH}`;
const keys = createRemoteJWKSet(new URL('/jwks', issuer));

const verifier = {
  async verifyAccessToken(token) {
    const { payload } = await jwtVerify(token, keys, { issuer, audience: resources }).catch(error => {
      throw new InvalidTokenError(error.message);
    });
    const { client_id: clientId, scope = '', exp: expiresAt, jti } = payload;
    return { token, clientId, scopes: scope.split(' '), expiresAt, extra: { jti } };
  },
};

function mcpServer() {
  const server = new McpServer({ name: 'resource-server', version: '1' });
  const tool = (name, inputSchema, run) =>
    server.registerTool(name, { description: name, inputSchema }, async (input, { authInfo }) => {
      append(join(dir, 'calls'), { name, ...input, token: authInfo.extra.jti });
      return { content: [{ type: 'text', text: await run(input) }] };
    });
  tool('echo', { text: z.string() }, ({ text }) => text);
  tool('slow', { text: z.string(), milliseconds: z.number() }, async ({ text, milliseconds }) => {
    await setTimeout(milliseconds);
    return text;
  });
  tool('administer', { text: z.string() }, ({ text }) => text);
  return server;
}

const app = express();
const originOf = request => `https://${request.headers['x-forwarded-host']}`;
app.get(METADATA, (request, response) => {
  const resource = originOf(request) + PATH;
  response.json({ resource, authorization_servers: [issuer], scopes_supported: ['mcp:read'] });
});
app.use(PATH, express.json(), (request, response, next) => {
  const { method, params } = request.body ?? {};
  const isAdministration = method === 'tools/call' && params?.name === 'administer';
  const guard = requireBearerAuth({
    verifier,
    requiredScopes: isAdministration ? ['mcp:read', 'mcp:admin'] : ['mcp:read'],
    resourceMetadataUrl: originOf(request) + METADATA,
  });
  return guard(request, response, next);
});
app.post(PATH, async (request, response) => {
  const server = mcpServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.use(PATH, (_request, response) => response.status(405).set('Allow', 'POST').end());
await serve([createServer(app), join(dir, 'resource-server.sock')]);
