//! The codes of connections and logins that failed.

use super::{ErrorEntry, ErrorGroup, entry};

/// Connections to servers.
pub(super) const CONNECT_CODES: ErrorGroup = ErrorGroup {
    key: "connections to servers",
    title: "Connections to servers",
    intro: "metamcp could not connect a server, an authorization server, a registry or an embedding endpoint.",
    entries: CONNECT_CODES_ENTRIES,
};

const CONNECT_CODES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "ADDRESS_FORBIDDEN",
        "A server named an address on a private network or on this host.",
        "See [addresses that servers name](servers/remote.md#addresses-that-servers-name).",
    ),
    entry(
        "BROKEN_OFF",
        "The connection broke after the request was sent.",
        "See the log of the other side.",
    ),
    entry(
        "CERTIFICATE_UNUSABLE",
        "`tls` names a file that metamcp cannot use.",
        "Check the path and its permissions, and that key and certificate belong together.",
    ),
    entry(
        "EMBEDDING_UNUSABLE",
        "The embedding endpoint answered with something else than vectors.",
        "Check `search.embedding`.",
    ),
    entry(
        "ENDPOINT_FOREIGN",
        "A server with SSE names an address of another origin for messages.",
        "Set `url` to the address that clients use.",
    ),
    entry(
        "HANDSHAKE_REFUSED",
        "The server refused the handshake.",
        "Check `era`, and the versions that the server supports.",
    ),
    entry(
        "HANDSHAKE_UNUSABLE",
        "The answer to the handshake is not one of an MCP server.",
        "Open the address in a browser; check its path.",
    ),
    entry(
        "HEADER_INVALID",
        "A header of the configuration has characters that HTTP forbids.",
        "Remove line breaks and control characters from the value.",
    ),
    entry(
        "HTTP_STATUS",
        "The endpoint answered with an unexpected HTTP status.",
        "Check the URL, the key and the log of the endpoint.",
    ),
    entry(
        "NAME_UNRESOLVED",
        "The name of the host is unknown.",
        "Check `url` and the resolver of the host; behind a proxy, set `proxy`.",
    ),
    entry(
        "NOT_JSON",
        "Something else than JSON answers, such as the page of a portal.",
        "Check the path of the URL.",
    ),
    entry(
        "NO_TRUST",
        "The system trusts no authority.",
        "Install `ca-certificates`, or set `SSL_CERT_FILE`.",
    ),
    entry(
        "PROXY_FAILED",
        "The proxy refuses the tunnel, or is absent.",
        "Check its address, its login and its list of names.",
    ),
    entry(
        "REDIRECTED",
        "The endpoint redirects to another origin.",
        "Write the address that it redirects to.",
    ),
    entry(
        "REGISTRY_LEFT_ALONE",
        "The registry failed recently; metamcp does not ask it for a while.",
        "Wait, or check `provision.registry`.",
    ),
    entry(
        "REGISTRY_UNUSABLE",
        "The registry answered with something else than a list of servers.",
        "Check `provision.registry.url`.",
    ),
    entry(
        "REQUEST_INVALID",
        "metamcp made a request that HTTP forbids.",
        "This is a bug: report it with the log.",
    ),
    entry(
        "SECRET_MISSING",
        "A credential or a variable is missing.",
        "See [secrets](servers/secrets.md).",
    ),
    entry(
        "SECRET_UNREADABLE",
        "A credential or a variable of a login is missing or unreadable.",
        "See [secrets](servers/secrets.md).",
    ),
    entry(
        "SERVER_NOT_STARTED",
        "The program of the server cannot be started, or nothing listens at its socket.",
        "Write the absolute path of the program: the PATH of the service is not the one of your shell. Run `metamcp doctor --server NAME`.",
    ),
    entry(
        "TARGET_INVALID",
        "metamcp cannot use an address as the target of a request.",
        "This is a bug: report it with the log.",
    ),
    entry(
        "TLS_FAILED",
        "The certificate is expired, has another name, is of an unknown authority, or the server speaks only TLS below 1.2.",
        "The message says which; set `tls.ca` for a private authority.",
    ),
    entry("TOO_LARGE", "The answer of an endpoint is too large.", "Check the path of the URL."),
    entry(
        "TOO_SLOW",
        "The embedding endpoint takes too long, so that searches do without it.",
        "Raise `search.embedding.query_timeout`, or use a faster model.",
    ),
    entry(
        "UNREACHABLE",
        "Nothing answers at the address.",
        "Check `url`, the firewall and `proxy`.",
    ),
    entry("URL_INVALID", "A URL has no host.", "This is a bug: report it with the log."),
];

/// Logins at servers.
pub(super) const LOGIN_CODES: ErrorGroup = ErrorGroup {
    key: "logins at servers",
    title: "Logins at servers",
    intro: "A server requires a login, and the login or its token failed. [Remote servers](servers/remote.md#logging-in) describes logins.",
    entries: LOGIN_CODES_ENTRIES,
};

const LOGIN_CODES_ENTRIES: &[ErrorEntry] = &[
    entry(
        "ANSWER_INVALID",
        "The authorization server sent an answer that metamcp cannot use.",
        "Check `url`, and whether the server supports OAuth.",
    ),
    entry(
        "ISSUER_CHANGED",
        "The server has another authorization server than the one of its `client_id`.",
        "Set the `client_id` of the new one.",
    ),
    entry(
        "ISSUER_MISMATCH",
        "The metadata of the authorization server names another server.",
        "Ask the operator of the server to correct it.",
    ),
    entry(
        "ISSUER_MISSING",
        "The answer of a login does not say from which server it comes.",
        "Do not use that answer; log in again.",
    ),
    entry(
        "ISSUER_WRONG",
        "The answer of a login comes from another server.",
        "Do not use that answer; log in again.",
    ),
    entry(
        "LOGIN_EXPIRED",
        "The login took more than ten minutes.",
        "Run `metamcp login NAME` again.",
    ),
    entry(
        "LOGIN_REFUSED",
        "A person or the authorization server refused.",
        "Agree, or ask the operator of the server for access.",
    ),
    entry(
        "LOGIN_REPLACED",
        "Another login, a logout or a reload ended the login.",
        "Run `metamcp login NAME` again.",
    ),
    entry(
        "LOGIN_REQUIRED",
        "The server requires a login, or other scopes.",
        "Run `metamcp login NAME`.",
    ),
    entry(
        "LOGIN_UNKNOWN",
        "The address of a login was used twice, or is of no login.",
        "Run `metamcp login NAME` again.",
    ),
    entry(
        "NOT_AN_ANSWER",
        "The pasted text is not the address that the browser ended at.",
        "Paste the whole address.",
    ),
    entry(
        "NO_CLIENT_ID",
        "The authorization server registers no clients by itself.",
        "Register metamcp by hand, and set `client_id`.",
    ),
    entry("NO_CODE", "The answer of the login has no code.", "Run `metamcp login NAME` again."),
    entry(
        "NO_ENDPOINT",
        "The authorization server does not announce an endpoint that the login needs.",
        "Ask its operator to announce it.",
    ),
    entry(
        "NO_LOGIN",
        "The server has no login: it is a program, has a header, or `auth = \"none\"`.",
        "Check `url`, `auth` and `headers`; a program gets its credentials from `env`.",
    ),
    entry(
        "NO_METADATA",
        "No authorization server is at the announced address.",
        "Check `url`; if the server wants a key, set it in `headers`.",
    ),
    entry(
        "NO_PERSON",
        "The server logs in without a person.",
        "Check `client_id`, `client_secret` and `scopes`.",
    ),
    entry(
        "NO_PKCE",
        "The authorization server does not support PKCE with S256.",
        "Ask its operator to announce it.",
    ),
    entry(
        "REGISTRATION_REFUSED",
        "The authorization server does not register metamcp.",
        "Register metamcp by hand, and set `client_id`.",
    ),
    entry(
        "RESOURCE_MISMATCH",
        "The metadata describes another server.",
        "Write `url` as the metadata names it, if you trust that address.",
    ),
    entry(
        "SCOPES_REFUSED",
        "The login lacks scopes that the server asks for.",
        "Ask the operator of the server for access.",
    ),
    entry("STOPPING", "The service stops.", "Run the command again once the service runs."),
    entry(
        "STORE_FAILED",
        "The state directory cannot be written.",
        "Check its permissions and its space.",
    ),
    entry(
        "TOKEN_REFUSED",
        "The authorization server refuses the code, the client or the refresh token.",
        "Log in again; check `client_id` and `client_secret`.",
    ),
    entry(
        "TOKEN_UNAVAILABLE",
        "The authorization server issues no token at present.",
        "See `metamcp auth`; metamcp tries again by itself.",
    ),
    entry(
        "TOO_MANY_LOGINS",
        "Too many logins wait for a person.",
        "Finish them, or wait ten minutes.",
    ),
    entry(
        "URL_INSECURE",
        "The server announces an address without https.",
        "Ask its operator to announce https.",
    ),
];
