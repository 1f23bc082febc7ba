# Every key of metamcp.toml: the submodule of services.metamcp.settings.
{
  format,
  lib,
  # For the service of a user, and not of the host.
  forUser ? false,
}:
let
  inherit (lib) mkOption types;
  inherit (import ./types.nix { inherit lib; })
    address
    cache
    credential
    credentialOrEnv
    credentialOrPath
    duration
    durationBetween
    durationOrZero
    group
    host
    listBetween
    namespace
    origin
    socketPath
    textUpTo
    trust
    url
    view
    ;

  server = import ./server.nix { inherit forUser format lib; };
  provisionable = types.submodule (
    server
    // {
      options = server.options // {
        start = mkOption {
          type = types.enum [ "lazy" ];
          default = "lazy";
          description = "When to connect: when it is added, so that there is no choice.";
        };

        namespace = mkOption {
          type = types.nullOr namespace;
          default = null;
          example = "internal/github";
          description = ''
            Whose server it is, for
            {option}`services.metamcp.settings.provision.trusted`. One of
            `null` is suggested and never started.
          '';
        };

        description = mkOption {
          type = textUpTo 1024;
          example = "Issues, pull requests and reviews on GitHub.";
          description = "What the server is for; it is found by these words.";
        };

        keywords = mkOption {
          type = listBetween 0 32 types.str;
          default = [ ];
          example = [
            "repository"
            "merge"
          ];
          description = "Words by which it is found besides.";
        };
      };
    }
  );
in
{ config, ... }:
let
  settings = config;
in
{
  freeformType = format.type;
  options = {
    service = {
      request_timeout = mkOption {
        type = duration;
        default = "60s";
        example = "5m";
        description = ''
          How long a request to a server may take. Progress that the
          server reports starts the time anew.
        '';
      };
      max_total_timeout = mkOption {
        type = duration;
        default = "300s";
        example = "30m";
        description = "How long a request may take, whatever progress it reports.";
      };
      shutdown_timeout = mkOption {
        type = duration;
        default = "10s";
        example = "1m";
        description = ''
          How long requests in flight may go on after the service was
          told to stop. The service tells systemd, so the unit's
          `TimeoutStopSec` need not be as long.
        '';
      };
      progress_beat = mkOption {
        type = durationOrZero;
        default = "30s";
        example = "10s";
        description = ''
          How long a tool may be silent before a client that asked for
          progress is sent some by the service, `"0s"` for never.
        '';
      };
      idle_exit = mkOption {
        type = durationOrZero;
        default = "0s";
        example = "30m";
        description = ''
          After how long without a client, a request of an operator, a
          call or a task the service ends by itself, `"0s"` for never.
          systemd starts it again for the next client.
        '';
      };
      log_level = mkOption {
        type = types.enum [
          "error"
          "warn"
          "info"
          "debug"
          "trace"
        ];
        default = "info";
        example = "debug";
        description = "Least severe kind of message that goes to the journal.";
      };
    };

    listen = {
      http = mkOption {
        type = address;
        default = "127.0.0.1:12011";
        example = "[::1]:12011";
        description = ''
          Address of the HTTP endpoint; {file}`metamcp.socket` listens on it.
          One that is not of the loopback interface needs both
          {option}`services.metamcp.settings.listen.tls` and
          {option}`services.metamcp.settings.listen.token`. Clients that
          connect to it under a name, or through another address, need an
          entry in {option}`services.metamcp.settings.listen.allowed_hosts`.
        '';
      };
      tls = mkOption {
        type = types.nullOr (
          types.submodule {
            options = {
              certificate = mkOption {
                type = credentialOrPath;
                example = "credential:tls-certificate";
                description = ''
                  PEM file with the certificate of the service and, after
                  it, those of its issuers: an absolute path that the
                  service may read, or `credential:NAME` for an entry of
                  {option}`services.metamcp.credentials`.
                '';
              };
              key = mkOption {
                type = credentialOrPath;
                example = "credential:tls-key";
                description = "PEM file with its private key, likewise.";
              };
            };
          }
        );
        default = null;
        example = {
          certificate = "credential:tls-certificate";
          key = "credential:tls-key";
        };
        description = ''
          Certificate and key, for clients that connect with `https://`;
          plain HTTP if `null`. A reload reads paths again. systemd reads
          credentials only when the service starts, so that a renewed one
          takes a restart.
        '';
      };
      token = mkOption {
        type = types.nullOr (types.strMatching "credential:[^./][^/]*|env:[^=]+");
        default = null;
        example = "credential:client-token";
        description = ''
          Token that clients must bring, in a header
          `Authorization: Bearer TOKEN`: `credential:NAME` for an entry of
          {option}`services.metamcp.credentials`, or `env:NAME` for a variable
          of the service. One line of at least 16 characters without spaces,
          as `openssl rand -hex 32` prints it. If `null`, whoever reaches the
          address is answered.
        '';
      };
      control = mkOption {
        type = if forUser then types.nullOr socketPath else socketPath;
        default = if forUser then null else "/run/metamcp/control.sock";
        example = "/run/metamcp/operators.sock";
        description =
          if forUser then
            ''
              Path of the control socket; {file}`metamcp-control.socket`
              listens on it. {file}`$XDG_RUNTIME_DIR/metamcp/control.sock` if
              `null`.
            ''
          else
            ''
              Path of the control socket; {file}`metamcp-control.socket`
              listens on it. Members of the group
              {option}`services.metamcp.settings.listen.control_group` may connect.
            '';
      };
      control_group = mkOption {
        type = types.nullOr group;
        default = if forUser then null else "metamcp";
        example = "wheel";
        description = ''
          Group whose members may use the control socket, besides root and
          the user of the service. ${
            if forUser then
              "They must be able to connect to it, too"
            else
              "The socket belongs to it, to `metamcp` if `null`"
          }.
        '';
      };
      rpc = mkOption {
        type = types.bool;
        default = false;
        example = true;
        description = ''
          Whether what the control socket answers is answered at
          `POST /rpc` too, to whoever reaches the address: everything that
          an operator can do.
        '';
      };
      root = mkOption {
        type = view;
        default = "direct";
        example = "passthrough:cluster";
        description = ''
          What clients see: `direct` for the tools of all servers under
          names with the server as prefix, `meta` for a handful of tools
          that find and call them, `passthrough:NAME` for one server as
          it is.
        '';
      };
      allowed_hosts = mkOption {
        type = types.listOf host;
        default = [ ];
        example = [ "mcp.example.org" ];
        description = ''
          Values of the `Host` header to accept besides those of the loopback
          interface and the address that the client has connected to: the
          names under which clients reach the service from elsewhere, without
          port.
        '';
      };
      allowed_origins = mkOption {
        type = types.listOf origin;
        default = [ ];
        example = [ "https://chat.example.org" ];
        description = "Values of the `Origin` header to accept besides those of the loopback interface.";
      };
      keep_alive = mkOption {
        type = duration;
        default = "15s";
        example = "30s";
        description = "How long a stream to a client may be silent before a comment keeps it alive.";
      };
      stream_after = mkOption {
        type = durationOrZero;
        default = "2s";
        example = "0s";
        description = ''
          How long an answer may take before it is sent as a stream of
          events, `"0s"` to send all answers that way.
        '';
      };
      write_timeout = mkOption {
        type = duration;
        default = "30s";
        example = "1m";
        description = ''
          How long a client may take nothing of what is written to it
          before its connection is cut.
        '';
      };
      session = mkOption {
        type = types.enum [
          "lenient"
          "strict"
          "off"
        ];
        default = "lenient";
        example = "strict";
        description = ''
          Which session ids clients must send: any or none (`lenient`),
          one that the service has issued, as the specification has it
          (`strict`), or there are no sessions (`off`).
        '';
      };
      session_key = mkOption {
        type = types.nullOr credential;
        default = null;
        example = "credential:session-key";
        description = ''
          Entry of {option}`services.metamcp.credentials` with at least 32
          bytes to sign session ids with, the same on every host that is
          to know them. If `null`, a key that is made at the first start
          and kept in {file}`${if forUser then "~/.local/state" else "/var/lib"}/metamcp`.
        '';
      };
      session_timeout = mkOption {
        type = duration;
        default = "30m";
        example = "8h";
        description = "After how long a session is forgotten that has no stream and no request.";
      };
      json_response = mkOption {
        type = types.bool;
        default = false;
        example = true;
        description = "Whether a POST is always answered with one JSON body and never with a stream of events.";
      };
      legacy_sse = mkOption {
        type = types.bool;
        default = false;
        example = true;
        description = ''
          Whether HTTP with SSE is served too, at `/sse`, for clients that
          speak only protocol version 2024-11-05.
        '';
      };
    };

    breaker = {
      failure_threshold = mkOption {
        type = types.ints.between 0 1000;
        default = 5;
        example = 10;
        description = ''
          After how many failures in a row a server is left alone, 0 for
          never.
        '';
      };
      cooldown = mkOption {
        type = duration;
        default = "30s";
        example = "1m";
        description = "How long it is left alone before one request reaches it again.";
      };
    };

    pool = {
      size = mkOption {
        type = types.ints.between 1 1024;
        default = 20;
        example = 50;
        description = ''
          How many connections to servers there may be. When there are as
          many, the one that was used longest ago makes room, and a
          request waits if all are in use.
        '';
      };
      reserve_size = mkOption {
        type = types.ints.between 0 1024;
        default = 0;
        example = 5;
        description = "How many more there may be for requests that have waited.";
      };
      reserve_timeout = mkOption {
        type = duration;
        default = "5s";
        example = "2s";
        description = "How long a request waits before it may have one of these.";
      };
      min_size = mkOption {
        type = types.ints.between 0 1023;
        default = 0;
        example = 4;
        description = ''
          How many of those that nobody uses are not closed, less than
          `size`.
        '';
      };
      idle_timeout = mkOption {
        type = durationOrZero;
        default = "5m";
        example = "15m";
        description = ''
          After how long a connection that nobody uses is closed, `"0s"`
          for never. A server's `lifecycle` takes precedence.
        '';
      };
    };

    health = {
      # Left out unless it is set: a server with `url` has a default of its own.
      interval = mkOption {
        type = types.nullOr durationOrZero;
        default = null;
        example = "1m";
        description = ''
          How long a server may be silent before it is pinged, `"0s"` for
          never: 30 s, and 20 s where it has a `url`, if `null`.
        '';
      };
      timeout = mkOption {
        type = duration;
        default = "10s";
        example = "5s";
        description = "How long it may take to answer a ping.";
      };
      failures = mkOption {
        type = types.ints.between 1 100;
        default = 3;
        example = 2;
        description = "After how many pings in a row without an answer it is given up.";
      };
      max_reconnects = mkOption {
        type = types.nullOr types.ints.u32;
        default = null;
        example = 10;
        description = ''
          After how many attempts in a row that nobody asked for a failed
          server is left alone until a request asks for it; never if `null`.
        '';
      };
    };

    tasks.expiry = mkOption {
      type = durationBetween "1m" "24h";
      default = "1h";
      example = "4h";
      description = ''
        How long a task that has ended is kept with its result, `"1m"` to
        `"24h"`.
      '';
    };

    tools = {
      sets = mkOption {
        type = types.nonEmptyListOf (
          types.enum [
            "core"
            "metatools"
          ]
        );
        default = [ "core" ];
        example = [
          "core"
          "metatools"
        ];
        description = ''
          Which meta-tools clients of the view `meta` see: `core` for
          `mcp_discover` and the other `mcp_` tools, `metatools` for
          `search_tools`, `run_tool`, `run_chain` and their companions.
        '';
      };
      list_changed = mkOption {
        type = types.bool;
        default = true;
        example = false;
        description = "Whether clients of the view `meta` hear that the tools behind it have changed.";
      };
      list_changed_debounce = mkOption {
        type = durationBetween "1ms" "1m";
        default = "150ms";
        example = "1s";
        description = ''
          How long a notice of a changed list or an updated resource
          waits for more of the same, in every view.
        '';
      };
      result_bytes_max = mkOption {
        type = types.ints.between 1024 16777216;
        default = 65536;
        example = 16384;
        description = "How large a result may be, in bytes, that a meta-tool returns whole; of a larger one it returns a preview.";
      };
      max_steps = mkOption {
        type = types.ints.between 1 64;
        default = 8;
        example = 16;
        description = "How many steps a chain of calls may have.";
      };
    };

    search = {
      strategy = mkOption {
        type = types.enum [
          "keyword"
          "bm25"
          "hybrid"
        ];
        default = "hybrid";
        example = "bm25";
        description = ''
          How tools are found: by the words of the query (`keyword`), also
          by how rare they are (`bm25`), also by what they mean
          (`hybrid`).
        '';
      };
      synonyms = mkOption {
        type = listBetween 0 256 (listBetween 2 16 (textUpTo 64));
        default = [ ];
        example = [
          [
            "deploy"
            "roll out"
          ]
        ];
        description = "Groups of words or phrases that mean the same here.";
      };
      embedding = mkOption {
        type = types.nullOr (
          types.submodule {
            options = {
              url = mkOption {
                type = url;
                example = "http://127.0.0.1:8080/v1/embeddings";
                description = "Endpoint that makes vectors of texts, as the OpenAI API has it.";
              };
              model = mkOption {
                type = types.nonEmptyStr;
                example = "all-minilm-l6-v2";
                description = "Model to ask it for.";
              };
              api_key = mkOption {
                type = types.nullOr credentialOrEnv;
                default = null;
                example = "credential:embedding-key";
                description = "Entry of {option}`services.metamcp.credentials` with its key.";
              };
            };
          }
        );
        default = null;
        example = {
          url = "http://127.0.0.1:8080/v1/embeddings";
          model = "all-minilm-l6-v2";
        };
        description = "Who helps to find tools by what they mean; nobody if `null`.";
      };
    };

    catalog.cache = mkOption {
      type = types.nullOr cache;
      default = null;
      example = "off";
      description = ''
        Directory in which definitions of tools are kept for the next
        start, or `"off"`; {file}`${if forUser then "~/.cache" else "/var/cache"}/metamcp` if `null`.${
          lib.optionalString (!forUser) (
            "\nAnother must be there, writable for the user of the service, and in\n"
            + "{option}`systemd.services.metamcp.serviceConfig.ReadWritePaths`."
          )
        }
      '';
    };

    provision = {
      enabled = mkOption {
        type = types.bool;
        default = settings.provision.servers != { } || settings.provision.registry != null;
        defaultText = lib.literalMD "whether servers or a registry are declared for it";
        example = false;
        description = ''
          Whether clients may have servers added that are declared in
          {option}`services.metamcp.settings.provision.servers`.
        '';
      };
      min_confidence = mkOption {
        type = types.numbers.between 0 1;
        default = 0.6;
        example = 0.8;
        description = ''
          How sure it must be, from 0 to 1, that a server is the one that
          was meant, for it to be started.
        '';
      };
      trusted = mkOption {
        type = listBetween 0 256 trust;
        default = [ ];
        example = [
          "@modelcontextprotocol/*"
          "internal/github"
        ];
        description = "Namespaces of servers that may be started, or all below one.";
      };
      servers = mkOption {
        type = types.attrsOf provisionable;
        default = { };
        example = lib.literalExpression ''
          {
            github = {
              namespace = "internal/github";
              description = "Issues, pull requests and reviews on GitHub.";
              command = lib.getExe pkgs.github-mcp-server;
              args = [ "stdio" ];
            };
          }
        '';
        description = ''
          MCP servers that are added when a client asks for what they do,
          by name. No other program is ever run at a client's request.
        '';
      };
      registry = mkOption {
        type = types.nullOr (
          types.submodule {
            options = {
              url = mkOption {
                type = url;
                example = "https://registry.example.org";
                description = "What stands before `/v0/servers`.";
              };
              ttl = mkOption {
                type = duration;
                default = "24h";
                example = "1h";
                description = "For how long an answer is good.";
              };
            };
          }
        );
        default = null;
        example = {
          url = "https://registry.example.org";
          ttl = "1h";
        };
        description = ''
          Registry of MCP servers to look for others in, which are
          suggested and never started; none is asked if `null`.
        '';
      };
    };

    servers = mkOption {
      type = types.attrsOf (types.submodule server);
      default = { };
      example = lib.literalExpression ''
        {
          gitea = {
            command = lib.getExe pkgs.gitea-mcp-server;
            args = [ "-t" "stdio" ];
            env.GITEA_ACCESS_TOKEN = "credential:gitea-token";
            start = "eager";
          };
          cluster.url = "http://127.0.0.1:12009/mcp";
        }
      '';
      description = ''
        MCP servers by name. A name has 1 to 40 letters, digits, `-` and
        `_`, starts and ends with a letter or digit, and has no `__`.
      '';
    };
  };
}
