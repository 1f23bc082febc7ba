# One table of [servers]: a submodule of services.metamcp.settings.servers.
{
  format,
  lib,
  # For the service of a user, and not of the host.
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
        Program to run as a child that speaks MCP over stdin and stdout: an
        absolute path, or a name to be found through
        {option}`services.metamcp.extraPackages`. Excludes `url` and `socket`.
      '';
    };

    args = mkOption {
      type = types.listOf types.str;
      default = [ ];
      example = [ "--read-only" ];
      description = "Arguments of `command`.";
    };

    env = mkOption {
      type = types.attrsOf types.str;
      default = { };
      example = {
        GITEA_HOST = "https://git.example.org";
        GITEA_ACCESS_TOKEN = "credential:gitea-token";
      };
      description = ''
        Environment variables of the child: a literal value,
        `credential:NAME` for an entry of
        {option}`services.metamcp.credentials`, or `env:NAME` for a variable
        of the service. Literal values are readable by every user, because
        they go through the Nix store.
      '';
    };

    cwd = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "/srv/notes";
      description = ''
        Working directory of the child, an absolute path.
        ${if forUser then "The home" else "{file}`/var/lib/metamcp`"} if `null`.
      '';
    };

    url = mkOption {
      type = types.nullOr httpUrl;
      default = null;
      example = "http://127.0.0.1:12009/mcp";
      description = ''
        Streamable HTTP endpoint to connect to, without TLS: reach a remote one
        through a local TLS proxy. Excludes `command` and `socket`.
      '';
    };

    headers = mkOption {
      type = types.attrsOf types.str;
      default = { };
      example = {
        Authorization = "credential:upstream-authorization";
      };
      description = "HTTP headers for `url`; values as in `env`.";
    };

    health = {
      interval = mkOption {
        type = types.nullOr durationOrZero;
        default = null;
        example = "1m";
        description = ''
          How long this server may be silent before it is pinged, `"0s"` for
          never; what {option}`services.metamcp.settings.health.interval` says
          if `null`.
        '';
      };
      timeout = mkOption {
        type = types.nullOr duration;
        default = null;
        example = "5s";
        description = ''
          How long it may take to answer a ping; what
          {option}`services.metamcp.settings.health.timeout` says if `null`.
        '';
      };
      failures = mkOption {
        type = types.nullOr (types.ints.between 1 100);
        default = null;
        example = 2;
        description = ''
          After how many pings in a row without an answer it is given up; what
          {option}`services.metamcp.settings.health.failures` says if `null`.
        '';
      };
      max_reconnects = mkOption {
        type = types.nullOr types.ints.u32;
        default = null;
        example = 10;
        description = ''
          After how many attempts in a row that nobody asked for it is left
          alone until a request asks for it; what
          {option}`services.metamcp.settings.health.max_reconnects` says if
          `null`.
        '';
      };
    };

    socket = mkOption {
      type = types.nullOr socketPath;
      default = null;
      example = "/run/metamcp-servers/notes.sock";
      description = ''
        Socket of a unit with `Accept=true`, which systemd starts for the
        connection, with a user, limits and a sandbox of its own. The service
        must be in the group of the socket. Excludes `command` and `url`.
      '';
    };

    unit = mkOption {
      type = types.nullOr unit;
      default = null;
      example = "notes-mcp";
      description = ''
        Name of the template of the unit behind `socket`, without `@`, for
        messages and for what its journal says: {file}`metamcp-server-` and the name of the
        socket, without its suffix, if `null`.
      '';
    };

    start_timeout = mkOption {
      type = duration;
      default = "1m";
      example = "3m";
      description = ''
        How long the server may take from being started to having answered
        `initialize`.
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
        When to connect: `lazy` with the first request that needs the server,
        `eager` when the service starts, `prewarm` before the service accepts
        its first client. Only a `shared` server can be other than `lazy`.
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
        Who shares a connection to the server: `shared` for everybody at a
        time, `exclusive` for one request at a time, whoever sends it,
        `session` for one client session each, as a server needs that keeps
        state for its client.
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
                  `keep-alive` to keep a connection that nobody uses, for ever
                  or for `idle_timeout`, `ephemeral` to close it after its last
                  answer.
                '';
              };
              idle_timeout = mkOption {
                type = types.nullOr duration;
                default = null;
                example = "1h";
                description = ''
                  After how long without use a connection is closed that is
                  kept with `keep-alive`; never if `null`.
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
        For how long a connection is kept that nobody uses: for ever
        (`"keep-alive"`), for a time of its own (`{ mode = "keep-alive";
        idle_timeout = "1h"; }`), or not at all (`"ephemeral"`). If `null`, a
        server that is not `lazy` is kept for ever, and every other one for
        {option}`services.metamcp.settings.pool.idle_timeout`.
      '';
    };

    max_connections = mkOption {
      type = types.nullOr (types.ints.between 1 1024);
      default = null;
      example = 8;
      description = ''
        How many connections an `exclusive` or `session` server may have: 4
        or 16 if `null`.
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
        In which era of the protocol the server is spoken to: `legacy` with
        an `initialize` handshake, `modern` without one, `auto` in the newer
        one that it understands.
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
        What is sent a second time within one call: `safe` for requests that
        were not executed or may be executed twice, `vital` for every one
        that failed by the server's fault, `fresh` for the same until the
        server has been connected anew, `never` for none.
      '';
    };
  };
}
