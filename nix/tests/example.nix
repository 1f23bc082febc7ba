# An example that uses most options of services.metamcp.
{
  config,
  lib,
  pkgs,
  ...
}:
{
  services.metamcp = {
    enable = true;

    metrics = {
      enable = true;
      port = 12119;
    };

    settings = {
      service.log_level = "debug";
      service.progress_beat = "0s";
      service.idle_exit = "1h";
      service.memory_max = 536870912;
      listen.http = "127.0.0.1:12111";
      listen.tls = {
        certificate = "credential:tls-certificate";
        key = "credential:tls-key";
      };
      listen.token = "credential:client-token";
      listen.control_group = "metamcp";
      listen.root = "direct";
      listen.rpc = true;
      listen.session = "lenient";
      listen.session_key = "credential:session-key";
      listen.session_timeout = "1h";
      listen.stream_after = "0s";
      listen.json_response = true;
      listen.legacy_sse = true;
      pool.size = 30;
      pool.idle_timeout = "15m";
      breaker.failure_threshold = 3;
      tasks.expiry = "2h";
      tools = {
        sets = [
          "core"
          "metatools"
        ];
        list_changed_debounce = "1s";
        result_bytes_max = 4096;
        max_steps = 4;
      };
      execute = {
        enabled = true;
        profile = "standard";
        code_bytes_max = 16384;
        timeout = "30s";
        sleep_max = "5s";
        output_bytes_max = 1048576;
        max_tool_calls = 200;
        max_parallel = 4;
        memory_bytes_max = 33554432;
      };
      search = {
        strategy = "bm25";
        synonyms = [
          [
            "deploy"
            "roll out"
          ]
        ];
        embedding = {
          url = "http://127.0.0.1:8080/v1/embeddings";
          model = "all-minilm-l6-v2";
          api_key = "credential:token";
        };
      };
      catalog.cache = "/var/cache/metamcp";
      provision = {
        enabled = true;
        min_confidence = 0.75;
        trusted = [
          "@modelcontextprotocol/*"
          "internal/echo"
        ];
        servers.echo = {
          namespace = "internal/echo";
          description = "Repeats a text.";
          keywords = [ "repeat" ];
          command = "metamcp";
          args = [
            "demo-server"
            "scratch"
          ];
          env.ACCESS_TOKEN = "credential:token";
        };
        registry = {
          url = "http://127.0.0.1:12010";
          ttl = "1h";
        };
      };
      health = {
        interval = "1m";
        failures = 5;
        max_reconnects = 10;
      };
      servers = {
        # A demonstration server of the program itself.
        clock = {
          command = "metamcp";
          args = [
            "demo-server"
            "clock"
          ];
          start = "eager";
        };
        shell = {
          command = lib.getExe pkgs.bash;
          args = [
            "-c"
            "exec metamcp demo-server scratch"
          ];
          retry = "never";
          era = "legacy";
          lifecycle = "ephemeral";
          env = {
            GREETING = "good morning";
            ACCESS_TOKEN = "credential:token";
          };
        };
        notes = {
          command = "metamcp";
          args = [
            "demo-server"
            "scratch"
          ];
          sharing = "session";
          max_connections = 8;
          start_timeout = "2m";
        };
        # A unit that this configuration does not have. metamcp names it at its first use.
        unit = {
          socket = "/run/metamcp-servers/unit.sock";
          unit = "unit-mcp";
        };
        cluster = {
          url = "http://127.0.0.1:12009/mcp";
          headers.Authorization = "credential:token";
          health.interval = "0s";
          lifecycle = {
            mode = "keep-alive";
            idle_timeout = "1h";
          };
        };
      };
    };

    # No server listens there.
    upstream = {
      name = "far";
      url = "http://127.0.0.1:12008/mcp";
      unit = "far-mcp.service";
      apiKeyFile = "/etc/metamcp-token";
    };
    claudeCode.enable = true;

    servers = {
      # Connected at the first request, and not before the first client.
      far.start = "lazy";
      # Server units, one with each preset.
      hours = {
        package = config.services.metamcp.package;
        args = [
          "demo-server"
          "clock"
        ];
        sandbox.preset = "strict";
      };
      diary = {
        package = config.services.metamcp.package;
        args = [
          "demo-server"
          "scratch"
        ];
        sharing = "session";
        max_connections = 8;
        env.ACCESS_TOKEN = "credential:token";
        sandbox = {
          preset = "no-network";
          memoryMax = "256M";
          tasksMax = 64;
          cpuQuota = "150%";
        };
      };
      waiting = {
        package = config.services.metamcp.package;
        args = [
          "demo-server"
          "patience"
        ];
        start = "eager";
        sandbox = {
          allowedAddresses = [ "localhost" ];
          readOnlyPaths = [ "/etc/metamcp" ];
        };
      };
      # The server gets its arguments and variables unchanged.
      literal = {
        package = pkgs.bash;
        args = [
          "-c"
          "[ \"$0\" = \"$NASTY\" ] && exec metamcp demo-server \"$1\""
          "it's $HOME; 50% \"of\" it\n\\"
          "scratch"
        ];
        extraPackages = [ config.services.metamcp.package ];
        env = {
          NASTY = "it's $HOME; 50% \"of\" it\n\\";
        };
        credentials.ACCESS_TOKEN = "/etc/metamcp-token";
        sandbox = {
          preset = "none";
          writablePaths = [ "/var/tmp" ];
        };
      };
      # A child of the service, as the servers in settings are.
      child = {
        command = "metamcp";
        args = [
          "demo-server"
          "scratch"
        ];
        isolation = "spawn";
        credentials.ACCESS_TOKEN = "/etc/metamcp-token";
      };
    };

    credentials = {
      client-token = "/etc/metamcp-client-token";
      session-key = "/etc/metamcp-session-key";
      token = "/etc/metamcp-token";
      tls-certificate = "/etc/metamcp-tls/certificate.pem";
      tls-key = "/etc/metamcp-tls/key.pem";
    };
    extraPackages = [ config.services.metamcp.package ];
  };
}
