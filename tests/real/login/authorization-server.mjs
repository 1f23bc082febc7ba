// A real authorization server: oidc-provider, behind nginx. Every person who asks is let in at once.
//
//     node authorization-server.mjs DIR ISSUER SECONDS RESOURCE...
//
// Access tokens live for SECONDS and are for one RESOURCE. The server listens at DIR/authorization-server.sock. It
// keeps its state in DIR/state.json, so that it can be restarted. It appends each request for a token to
// DIR/token-requests, and each secret that it issues or receives to DIR/secrets, both as lines of JSON. DIR/machine
// has the secret of the client `machine`, which logs in without a person.
//
// The rig controls the server at DIR/admin.sock:
//   POST /revoke    revokes all grants and refresh tokens
//   POST /lose      executes the next request for a token, but loses the answer
//   POST /hold      executes the next request for a token, but holds the answer until `POST /release`

import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { adapterOf, State } from './file-adapter.mjs';
import { append, require, serve } from './installed.mjs';

const [dir, issuer, seconds, ...resources] = process.argv.slice(2);
const { Provider, errors } = require('oidc-provider');

const SCOPES = 'mcp:read mcp:admin';
/** The seconds that everything lives but access tokens. */
const LONG = 86400;
/** The members of requests and answers that nothing but a token store may keep. */
const SECRETS = [
  'access_token', 'refresh_token', 'code', 'code_verifier', 'client_secret', 'registration_access_token',
];

const state = new State(join(dir, 'state.json'));
if (!state.get('rig:keys')) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  state.set('rig:keys', [{ ...privateKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig', kid: 'rig' }]);
}
let losesNextAnswer = false;
/** What the next answer with a token waits for, and the function that ends it. */
let hold = null;
let release = () => {};

const provider = new Provider(issuer, {
  adapter: adapterOf(state),
  jwks: { keys: state.get('rig:keys') },
  cookies: { keys: ['cookies of a test'] },
  clients: [
    {
      client_id: 'machine',
      client_secret: readFileSync(join(dir, 'machine'), 'utf8'),
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
  ],
  findAccount: async (_context, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: async () => true,
      getResourceServerInfo: async (_context, resource) => {
        if (!resources.includes(resource)) throw new errors.InvalidTarget();
        const lifetime = Number(seconds);
        return { scope: SCOPES, audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: lifetime };
      },
    },
  },
  interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
  pkce: { required: () => true },
  rotateRefreshToken: true,
  ttl: {
    AccessToken: Number(seconds),
    ClientCredentials: Number(seconds),
    Grant: LONG,
    Interaction: LONG,
    RefreshToken: LONG,
    Session: LONG,
  },
});
// nginx ends TLS, and says so in headers.
provider.proxy = true;
provider.on('server_error', (_context, error) => console.error(error));

provider.use(async (context, next) => {
  await next();
  record(context.oidc?.params);
  record(context.oidc?.body);
  record(context.body);
  const location = context.response.get('location') ?? '';
  if (location.includes('code=')) record({ code: new URL(location).searchParams.get('code') });
  const { authorization } = context.headers;
  if (authorization?.startsWith('Basic ')) {
    const [, secret] = Buffer.from(authorization.slice(6), 'base64').toString().split(':');
    record({ client_secret: decodeURIComponent(secret) });
  }
  if (context.path !== '/token') return;
  const { grant_type: grant, client_id: client, resource, scope } = context.oidc?.params ?? {};
  const { status, body } = context;
  append(join(dir, 'token-requests'), { grant, client, resource, scope, status, error: body?.error });
  const held = hold;
  hold = null;
  await held;
  if (losesNextAnswer) {
    losesNextAnswer = false;
    context.respond = false;
    context.req.socket.destroy();
  }
});

function record(values) {
  for (const name of SECRETS) {
    if (typeof values?.[name] === 'string') append(join(dir, 'secrets'), { name, value: values[name] });
  }
}

/** Lets the person in, and gives the client what it asks for. */
async function interact(request, response) {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId: 'person' } });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
  for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

const answer = provider.callback();
const server = createServer((request, response) => {
  if (!request.url.startsWith('/interaction/')) return answer(request, response);
  interact(request, response).catch(error => {
    console.error(error);
    response.writeHead(500).end();
  });
});

/** The kinds of records that a login consists of. */
const OF_LOGINS = new Set(['AccessToken', 'AuthorizationCode', 'Grant', 'RefreshToken']);
const admin = createServer((request, response) => {
  if (request.url === '/revoke') state.remove(name => OF_LOGINS.has(name.split(':')[0]));
  if (request.url === '/lose') losesNextAnswer = true;
  if (request.url === '/hold') hold = new Promise(resolve => (release = resolve));
  if (request.url === '/release') release();
  response.end();
});
await serve([admin, join(dir, 'admin.sock')], [server, join(dir, 'authorization-server.sock')]);
