# Of the options for the keys of a server: the examples, and what is special to Nix. The
# rest is in nix/schema.json.
{
  lib,
  # The keys of the table [health], in the schema.
  health,
  # True for the Home Manager module, which is for the service of a user.
  forUser ? false,
}:
{
  args.example = [ "--read-only" ];
  auth = {
    example = {
      client_id = "metamcp";
      client_secret = "credential:tracker-client";
    };
    options = {
      client_id.example = "metamcp";
      client_metadata_url.example = "https://mcp.example.org/metamcp.json";
      client_secret = {
        example = "credential:tracker-client";
        description = ''
          The secret that belongs to `client_id`: `credential:NAME` for an entry of
          {option}`services.metamcp.credentials`, or `env:NAME` for a variable of
          the service.
        '';
      };
      grant.example = "client_credentials";
      scopes.example = [ "issues:read" ];
    };
  };
  command = {
    example = lib.literalExpression "lib.getExe pkgs.mcp-nixos";
    description = ''
      A program to run as a child that speaks MCP over stdin and stdout: an
      absolute path, or a name that is looked up in
      {option}`services.metamcp.extraPackages`. Set only one of `command`,
      `url` and `socket`.
    '';
  };
  cwd = {
    example = "/srv/notes";
    description = ''
      The working directory of the child, an absolute path. If `null`,
      ${if forUser then "the home directory" else "{file}`/var/lib/metamcp`"}.
    '';
  };
  env = {
    example = {
      GITEA_HOST = "https://git.example.org";
      GITEA_ACCESS_TOKEN = "credential:gitea-token";
    };
    description = ''
      The environment variables of the child. A value is a literal text,
      `credential:NAME` for an entry of {option}`services.metamcp.credentials`,
      or `env:NAME` for a variable of the service. Every user can read literal
      values in the Nix store.
    '';
  };
  era.example = "legacy";
  forward_headers.example = [ "X-Project" ];
  headers = {
    example.Authorization = "credential:upstream-authorization";
    description = "The HTTP headers that metamcp sends to `url`. Values are as in `env`.";
  };
  health =
    lib.mapAttrs
      (key: example: {
        inherit example;
        default = null;
        # The first sentence for the table [health], which has the value if this is null.
        description = ''
          ${lib.removeSuffix "." (lib.head (lib.splitString ". " health.${key}.description))}. If `null`,
          the value of {option}`services.metamcp.settings.health.${key}`.
        '';
      })
      {
        failures = 2;
        interval = "1m";
        max_reconnects = 10;
        timeout = "5s";
      };
  lifecycle = {
    example = {
      mode = "keep-alive";
      idle_timeout = "1h";
    };
    options = {
      mode.example = "keep-alive";
      idle_timeout.example = "1h";
    };
  };
  max_connections.example = 8;
  proxy.example = "http://proxy.example.org:3128";
  record_texts.example = "hash";
  retry.example = "never";
  sharing.example = "session";
  socket = {
    example = "/run/metamcp-servers/notes.sock";
    description = ''
      The path of the socket of a systemd unit with `Accept=true`. systemd
      starts an instance for each connection, with its own user, limits and
      sandbox. The service must be a member of the group of the socket. Set
      only one of `command`, `url` and `socket`.
    '';
  };
  start.example = "eager";
  start_timeout.example = "3m";
  tls =
    let
      pem = text: example: {
        inherit example;
        description = ''
          ${text}: the absolute path of a PEM file that the service can read, or
          `credential:NAME` for an entry of {option}`services.metamcp.credentials`.
        '';
      };
    in
    {
      ca = pem "The certificates of authorities that metamcp trusts for this server besides those of the system" "/etc/ssl/certs/example.pem";
      certificate = pem "The certificate that metamcp shows to this server" "credential:tracker-certificate";
      key = pem "The private key of `certificate`" "credential:tracker-key";
    };
  unit.example = "notes-mcp";
  url = {
    example = "https://mcp.example.org/mcp";
    description = ''
      The URL of a streamable HTTP endpoint, with TLS or without. If the
      endpoint requires a login, run {command}`metamcp login NAME` once. Set
      only one of `command`, `url` and `socket`.
    '';
  };
}
