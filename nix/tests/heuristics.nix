# Tests of the heuristics for secrets, downloaded programs and browsers: returns the list
# of wrong results.
{ lib }:
let
  secrets = import ../secret-lookalikes.nix { inherit lib; };
  inherit (import ../fetched-programs.nix { inherit lib; }) fetched;
  browserServers = import ../browser-servers.nix { inherit lib; };
  words =
    text: builtins.filter (part: builtins.isString part && part != "") (builtins.split " " text);
  commandLine = text: f: f (builtins.head (words text)) (builtins.tail (words text));

  argumentsHaveSecret = text: secrets.argumentsHaveSecret (words text);
  isUnpinned =
    text:
    let
      download = commandLine text fetched;
    in
    download != null && !download.isPinned;
  downloads = text: commandLine text fetched != null;
  drivesBrowser = text: commandLine text browserServers.drivesBrowser;

  all =
    expected: claim: heuristic: texts:
    map (text: "${text} ${claim}: ${if expected then "no" else "yes"}") (
      builtins.filter (text: heuristic text != expected) texts
    );
  isSecretSetting =
    text:
    let
      parts = builtins.match "([^=]+)=(.*)" text;
    in
    secrets.isSecret (builtins.head parts) (builtins.elemAt parts 1);
in
all true "is a secret" isSecretSetting [
  "API_KEY=hunter2"
  "DATABASE_URL=postgres://alice:hunter2@127.0.0.1/notes"
  "Authorization=Bearer x"
  "GITEA_ACCESS_TOKEN=abc"
  "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE"
  "AZURE_PRIMARY_KEY=hunter2"
  "DATABASE_PW=hunter2"
  "DOMAIN_PASSWORD=hunter2"
  "KEYCLOAK_CLIENT_SECRET=hunter2"
  "LOGIN=ghp_0123456789abcdef"
  "LOGIN=glrt-0123456789abcdef"
  "PUBLIC_KEY=-----BEGIN PRIVATE KEY-----"
  "REGISTRY_TOKEN=hunter2"
  "SMTP_HOST_PASSWORD=hunter2"
  "VAULT_SECRET_ID=0123"
  "X=-----BEGIN PRIVATE KEY-----"
]
++ all false "is a secret" isSecretSetting [
  "ACCESS_TOKEN=credential:token"
  "API_KEY=env:API_KEY"
  "API_KEY="
  "API_KEY_FILE=key.txt"
  "AUTH_MODE=oauth"
  "CACHE_KEY_PREFIX=mcp"
  "COOKIE_DOMAIN=example.org"
  "GPG_SIGNING_KEY_ID=0x0123456789ABCDEF"
  "GREETING=good morning"
  "HOTKEY=ctrl-k"
  "KEYCLOAK_URL=https://id.example.org/"
  "HOME=/var/lib/notes"
  "MAX_TOKENS=4096"
  "PRIVATE_REGISTRY=https://registry.example.org"
  "PUBLIC_KEY=ssh-ed25519 AAAA"
  "SECRET_NAME=notes"
  "SORT_KEY=date"
  "SSL_CERT_KEY=/run/key.pem"
  "TOKEN_BUDGET=4000"
  "TOKEN_URI=https://id.example.org/token"
  "USE_TOKEN=false"
]
++ all true "has a secret" argumentsHaveSecret [
  "--api-key hunter2"
  "--token=abc"
  "--db postgres://alice:hunter2@127.0.0.1/notes"
  "-e API_TOKEN=abc"
  "-t stdio --password=x"
  "Authorization:x"
  "sk-0123456789ab"
]
++ all false "has a secret" argumentsHaveSecret [
  ""
  "--key-file=/run/x"
  "--db=postgres://alice@127.0.0.1/notes"
  "--keywords=a"
  "--max-tokens 5"
  "--primary key"
  "--token $TOKEN"
  "--token --verbose"
  "--token-env=TOKEN"
  "-e API_TOKEN"
  "-t stdio"
  "/srv/notes"
  "npm_config_cache=/var/cache"
]
++ all true "is a URL with a secret" secrets.urlHasSecret [
  "http://alice:hunter2@127.0.0.1/mcp"
  "http://127.0.0.1/mcp?a=b&api_key=hunter2"
]
++ all false "is a URL with a secret" secrets.urlHasSecret [
  "http://127.0.0.1:9000/mcp"
  "http://alice@127.0.0.1/mcp"
  "http://[::1]:9000/a:b@c?view=key"
]
++ all true "downloads an unpinned version" isUnpinned [
  "/usr/bin/uvx mcp-server-git --repository ."
  "bunx --bun server"
  "docker run -i --rm -e A -v /srv:/srv ghcr.io/a/b"
  "docker run -i localhost:5000/a/b:latest"
  "npm exec server"
  "npx -p server run"
  "npx -y @scope/server"
  "npx -y @scope/server@2"
  "npx -y @scope/server@latest"
  "pipx run server"
  "uv tool run server"
]
++ all false "downloads an unpinned version" isUnpinned [
  "docker ps"
  "docker run -it --name=a ghcr.io/a/b:1.2"
  "docker run --rm ghcr.io/a/b@sha256:0123456789abcdef"
  "node server.js"
  "npm exec --package=server@1.2.3 run"
  "npx"
  "npx --package=server@1.2.3 run"
  "npx -y @scope/server@1.2.3"
  "npx ./server.js"
  "uvx --from git+https://example.org/x@0123456789abcdef x"
  "uvx --from mcp==1.2.0 mcp"
  "uvx --python 3.12 mcp-server-git@2025.1.1"
]
++ all true "downloads a program" downloads [
  "npx -y server@1.2.3"
  "podman run image:1.2"
]
++ all false "downloads a program" downloads [
  "/nix/store/x/bin/mcp-server-git"
  "npm start"
]
++ all true "drives a browser" drivesBrowser [
  "/nix/store/x/bin/playwright-mcp"
  "node /srv/puppeteer-server.js"
  "npx -y @playwright/mcp@1.0.0"
  "npx chrome-devtools-mcp"
  "python -m browser-use"
]
++ all false "drives a browser" drivesBrowser [
  "filebrowser"
  "files /srv/chrome"
  "mcp-remote --no-browser"
  "node server.js --browser"
]
