# The keys of a table [servers.NAME]: a submodule of services.metamcp.settings.servers.
{
  format,
  lib,
  # True for the Home Manager module, which is for the service of a user.
  forUser ? false,
}:
let
  inherit (lib) mkOption types;
  inherit (import ./types.nix { inherit lib; })
    duration
    durationOrZero
    httpUrl
    socketPath
    unit
    ;
  lifecycle = types.enum [
    "keep-alive"
    "ephemeral"
  ];
in
{
  freeformType = format.type;
  options = {
    command = mkOption {
      type = types.nullOr types.nonEmptyStr;
      default = null;
      example = lib.literalExpression "lib.getExe pkgs.mcp-nixos";
      description = ''
        A program to run as a child that speaks MCP over stdin and stdout: an
        absolute path, or a name that is looked up in
        {option}`services.metamcp.extraPackages`. Set only one of `command`,
        `url` and `socket`.
      '';
    };

    args = mkOption {
      type = types.listOf types.str;
      default = [ ];
      example = [ "--read-only" ];
      description = "The arguments of `command`.";
    };

    env = mkOption {
      type = types.attrsOf types.str;
      default = { };
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

    cwd = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "/srv/notes";
      description = ''
        The working directory of the child, an absolute path. If `null`,
        ${if forUser then "the home directory" else "{file}`/var/lib/metamcp`"}.
      '';
    };

    url = mkOption {
      type = types.nullOr httpUrl;
      default = null;
      example = "http://127.0.0.1:12009/mcp";
      description = ''
        The streamable HTTP endpoint of the server, without TLS. Connect to a
        remote endpoint through a TLS proxy on this host. Set only one of
        `command`, `url` and `socket`.
      '';
    };

    headers = mkOption {
      type = types.attrsOf types.str;
      default = { };
      example = {
        Authorization = "credential:upstream-authorization";
      };
      description = "The HTTP headers that metamcp sends to `url`. Values are as in `env`.";
    };

    health = {
      interval = mkOption {
        type = types.nullOr durationOrZero;
        default = null;
        example = "1m";
        description = ''
          The silence of this server after which metamcp pings it. `"0s"`:
          never. If `null`, the value of
          {option}`services.metamcp.settings.health.interval`.
        '';
      };
      timeout = mkOption {
        type = types.nullOr duration;
        default = null;
        example = "5s";
        description = ''
          The time that this server may take to answer a ping. If `null`, the
          value of {option}`services.metamcp.settings.health.timeout`.
        '';
      };
      failures = mkOption {
        type = types.nullOr (types.ints.between 1 100);
        default = null;
        example = 2;
        description = ''
          The number of unanswered pings in a row after which metamcp gives up
          the session with this server. If `null`, the value of
          {option}`services.metamcp.settings.health.failures`.
        '';
      };
      max_reconnects = mkOption {
        type = types.nullOr types.ints.u32;
        default = null;
        example = 10;
        description = ''
          The number of attempts in a row to reconnect this server while no
          request needs it. After them, metamcp waits for a request. If `null`,
          the value of {option}`services.metamcp.settings.health.max_reconnects`.
        '';
      };
    };

    socket = mkOption {
      type = types.nullOr socketPath;
      default = null;
      example = "/run/metamcp-servers/notes.sock";
      description = ''
        The path of the socket of a systemd unit with `Accept=true`. systemd
        starts an instance for each connection, with its own user, limits and
        sandbox. The service must be a member of the group of the socket. Set
        only one of `command`, `url` and `socket`.
      '';
    };

    unit = mkOption {
      type = types.nullOr unit;
      default = null;
      example = "notes-mcp";
      description = ''
        The name of the template unit behind `socket`, without `@`. metamcp
        names the unit in messages and reads its journal. If `null`,
        {file}`metamcp-server-` and the file name of the socket without its
        suffix.
      '';
    };

    start_timeout = mkOption {
      type = duration;
      default = "1m";
      example = "3m";
      description = ''
        The longest time from the start of the server to the end of its
        handshake.
      '';
    };

    start = mkOption {
      type = types.enum [
        "lazy"
        "eager"
        "prewarm"
      ];
      default = "lazy";
      example = "eager";
      description = ''
        When metamcp connects the server. `lazy`: at the first request that
        needs it. `eager`: when the service starts. `prewarm`: before the
        service accepts its first client. Only a `shared` server can be `eager`
        or `prewarm`.
      '';
    };

    sharing = mkOption {
      type = types.enum [
        "shared"
        "exclusive"
        "session"
      ];
      default = "shared";
      example = "session";
      description = ''
        The clients that share a connection to the server. `shared`: all
        clients at the same time. `exclusive`: one request at a time, from any
        client. `session`: each client session has its own connection. Use
        `session` for a server that keeps state for its client.
      '';
    };

    lifecycle = mkOption {
      type = types.nullOr (
        types.coercedTo lifecycle (mode: { inherit mode; }) (
          types.submodule {
            options = {
              mode = mkOption {
                type = lifecycle;
                example = "keep-alive";
                description = ''
                  `keep-alive`: metamcp keeps an idle connection for ever, or
                  for `idle_timeout`. `ephemeral`: metamcp closes it after its
                  last answer.
                '';
              };
              idle_timeout = mkOption {
                type = types.nullOr duration;
                default = null;
                example = "1h";
                description = ''
                  The time after which metamcp closes an idle `keep-alive`
                  connection. If `null`, never.
                '';
              };
            };
          }
        )
      );
      default = null;
      example = {
        mode = "keep-alive";
        idle_timeout = "1h";
      };
      description = ''
        The time that metamcp keeps an idle connection: for ever
        (`"keep-alive"`), for a given time (`{ mode = "keep-alive";
        idle_timeout = "1h"; }`), or not at all (`"ephemeral"`). If `null`, for
        {option}`services.metamcp.settings.pool.idle_timeout`, or for ever if
        `start` is not `lazy`.
      '';
    };

    max_connections = mkOption {
      type = types.nullOr (types.ints.between 1 1024);
      default = null;
      example = 8;
      description = ''
        The largest number of connections to an `exclusive` or `session`
        server. If `null`, 4 for `exclusive` and 16 for `session`.
      '';
    };

    era = mkOption {
      type = types.enum [
        "auto"
        "legacy"
        "modern"
      ];
      default = "auto";
      example = "legacy";
      description = ''
        The era of the protocol in which metamcp speaks to the server.
        `legacy`: with an `initialize` handshake. `modern`: without a handshake.
        `auto`: the newer era that the server understands.
      '';
    };

    retry = mkOption {
      type = types.enum [
        "safe"
        "vital"
        "fresh"
        "never"
      ];
      default = "safe";
      example = "never";
      description = ''
        The requests that metamcp sends a second time within one call. `safe`:
        a request that provably was not executed, only reads, or is declared
        idempotent. `vital`: every request that failed by the server's fault,
        once; the server may execute it twice. `fresh`: as `vital` until the
        server has been connected again, then as `safe`. `never`: none.
      '';
    };
  };
}
