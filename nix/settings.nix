# All keys of metamcp.toml: the submodule of services.metamcp.settings. The keys, their
# types, defaults and meanings are in nix/schema.json. Here are the examples, and what is
# special to Nix.
{
  format,
  lib,
  # True for the Home Manager module, which is for the service of a user.
  forUser ? false,
}:
{ config, ... }:
let
  inherit (import ./schema-options.nix { inherit format lib; }) optionsOf schema;
  inherit (import ./types.nix { inherit lib; }) address;
  server = import ./server-details.nix {
    inherit forUser lib;
    health = schema.properties.health.properties;
  };
in
{
  freeformType = format.type;
  options = optionsOf schema {
    auth = {
      by_clients.example = true;
      redirect_url.example = "https://mcp.example.org/oauth/callback";
    };

    breaker = {
      cooldown.example = "1m";
      failure_threshold.example = 10;
    };

    catalog.cache = {
      example = "off";
      description = ''
        The directory in which metamcp keeps definitions of tools for
        the next start, an absolute path, or `"off"`. If `null`,
        {file}`${if forUser then "~/.cache" else "/var/cache"}/metamcp`.${
          lib.optionalString (!forUser) (
            " Any other directory must exist, be\nwritable for the user of the service, and be listed in\n"
            + "{option}`systemd.services.metamcp.serviceConfig.ReadWritePaths`."
          )
        }
      '';
    };

    execute = {
      code_bytes_max.example = 16384;
      max_parallel.example = 4;
      max_tool_calls.example = 200;
      memory_bytes_max.example = 33554432;
      output_bytes_max.example = 1048576;
      profile.example = "dev";
      sleep_max.example = "5s";
      timeout.example = "30s";
    };

    health = {
      failures.example = 2;
      # The default of the program depends on the transport of the server.
      interval = {
        default = null;
        example = "1m";
        description = ''
          The silence of a server after which metamcp pings it. `"0s"`:
          never. If `null`, 30 s, or 20 s for a server with a `url`.
        '';
      };
      max_reconnects.example = 10;
      timeout.example = "5s";
    };

    listen = {
      allowed_hosts.example = [ "mcp.example.org" ];
      allowed_origins.example = [ "https://chat.example.org" ];
      control = {
        default = if forUser then null else "/run/metamcp/control.sock";
        isNullable = forUser;
        example = "/run/metamcp/operators.sock";
        description = ''
          The path of the control socket. {file}`metamcp-control.socket`
          listens on it. ${
            if forUser then
              "If `null`,\n{file}`$XDG_RUNTIME_DIR/metamcp/control.sock`."
            else
              "Members of the group\n{option}`services.metamcp.settings.listen.control_group` may connect."
          }
        '';
      };
      control_group = {
        default = if forUser then null else "metamcp";
        example = "wheel";
        description = ''
          The group whose members may use the control socket, besides root
          and the user of the service. ${
            if forUser then
              "They must also have access to the path of the socket"
            else
              "The socket belongs to this group. If `null`, `metamcp`"
          }.
        '';
      };
      http = {
        type = address;
        example = "[::1]:12011";
        description = ''
          The address for clients. {file}`metamcp.socket` listens on it. An
          address that is not on the loopback interface requires both
          {option}`services.metamcp.settings.listen.tls` and
          {option}`services.metamcp.settings.listen.token`. If clients
          connect by name or through another address, list it in
          {option}`services.metamcp.settings.listen.allowed_hosts`.
        '';
      };
      keep_alive.example = "30s";
      metrics = {
        type = lib.types.nullOr address;
        example = "127.0.0.1:12019";
        description = ''
          The address that serves `GET /metrics` without the token, and
          nothing else.${if forUser then "" else " {file}`metamcp-metrics.socket` listens on it."} If
          `null`, `/metrics` of the address for clients.
        '';
      };
      root.example = "passthrough:cluster";
      session.example = "strict";
      session_key = {
        example = "credential:session-key";
        description = ''
          `credential:NAME` for an entry of
          {option}`services.metamcp.credentials` with at least 32 bytes.
          metamcp signs session ids with it. All hosts that accept the same
          sessions need the same key. If `null`, metamcp creates a key at
          the first start and keeps it in {file}`${if forUser then "~/.local/state" else "/var/lib"}/metamcp`.
        '';
      };
      session_timeout.example = "8h";
      stream_after.example = "0s";
      tls = {
        example = {
          certificate = "credential:tls-certificate";
          key = "credential:tls-key";
        };
        description = ''
          The certificate and key for TLS, for clients that connect with
          `https://`. If `null`, the service speaks plain HTTP. A reload
          reads paths again. systemd reads credentials only when the service
          starts, so that a renewed credential requires a restart.
        '';
        options = {
          certificate = {
            example = "credential:tls-certificate";
            description = ''
              A PEM file with the certificate of the service, followed
              by those of its issuers: an absolute path that the
              service can read, or `credential:NAME` for an entry of
              {option}`services.metamcp.credentials`.
            '';
          };
          key.example = "credential:tls-key";
        };
      };
      token = {
        example = "credential:client-token";
        description = ''
          The token that clients must send, in the header
          `Authorization: Bearer TOKEN`: `credential:NAME` for an entry of
          {option}`services.metamcp.credentials`, or `env:NAME` for a variable
          of the service. The token is one line of at least 16 characters
          without spaces, for example the output of `openssl rand -hex 32`.
          If `null`, metamcp answers every client that reaches the address.
        '';
      };
      write_timeout.example = "1m";
    };

    pool = {
      idle_timeout.example = "15m";
      min_size.example = 4;
      reserve_size.example = 5;
      reserve_timeout.example = "2s";
      size.example = 50;
    };

    provision = {
      enabled = {
        type = lib.types.bool;
        default = config.provision.servers != { } || config.provision.registry != null;
        defaultText = lib.literalMD "`true` if `servers` or `registry` is set";
      };
      min_confidence.example = 0.8;
      registry = {
        example = {
          url = "https://registry.example.org";
          ttl = "1h";
        };
        options = {
          ttl.example = "1h";
          url.example = "https://registry.example.org";
        };
      };
      servers = {
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
          The servers that metamcp may add when a client asks for what they
          do, by name. metamcp never runs any other program on request of a
          client.
        '';
        options = server // {
          description.example = "Issues, pull requests and reviews on GitHub.";
          keywords.example = [
            "repository"
            "merge"
          ];
          namespace = {
            example = "internal/github";
            description = ''
              The namespace, which names the owner of the server.
              {option}`services.metamcp.settings.provision.trusted` refers to
              it. If `null`, metamcp suggests the server and never starts it.
            '';
          };
          start = { };
        };
      };
      trusted.example = [
        "@modelcontextprotocol/*"
        "internal/github"
      ];
    };

    search = {
      embedding = {
        example = {
          url = "http://127.0.0.1:8080/v1/embeddings";
          model = "all-minilm-l6-v2";
        };
        options = {
          api_key.example = "credential:embedding-key";
          model.example = "all-minilm-l6-v2";
          url.example = "http://127.0.0.1:8080/v1/embeddings";
        };
      };
      strategy.example = "bm25";
      synonyms.example = [
        [
          "deploy"
          "roll out"
        ]
      ];
    };

    servers = {
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
        The MCP servers, by name. A name has 1 to 40 letters, digits, `-`
        and single `_`, with a letter or digit at both ends.
      '';
      options = server;
    };

    service = {
      idle_exit.example = "30m";
      log_level.example = "debug";
      max_total_timeout.example = "30m";
      memory_max = {
        example = 536870912;
        description = ''
          The number of bytes that the messages of all clients together may
          take. If `null`, half of the unit's `MemoryMax`, or 256 MiB if the
          unit has no `MemoryMax`.
        '';
      };
      progress_beat.example = "10s";
      proxy.example = "http://proxy.example.org:3128";
      request_timeout.example = "5m";
      shutdown_timeout = {
        example = "1m";
        description = ''
          The time that running requests may go on after a stop was
          requested. The service extends the stop timeout of systemd, so
          that the unit's `TimeoutStopSec` may be shorter.
        '';
      };
    };

    tasks.expiry.example = "4h";

    telemetry = {
      enabled.example = false;
      calls.example = "failures";
      otlp.example = "http://127.0.0.1:4318";
    };

    tools = {
      list_changed_debounce.example = "1s";
      max_steps.example = 16;
      result_bytes_max.example = 16384;
      sets.example = [
        "core"
        "metatools"
      ];
    };
  };
}
