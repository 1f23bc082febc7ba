# Tests of generated files: the service and its sockets.
{
  document,
  server,
  service,
  settings,
  socket,
  unit,
  ...
}:
{
  "the control socket belongs to the group that may use it" = {
    module.imports = [
      { users.groups.operators = { }; }
      (settings { listen.control_group = "operators"; })
    ];
    has."etc/systemd/system/metamcp-control.socket.d/overrides.conf" = [ "SocketGroup=operators" ];
  };
  "a percent sign in the path of a credential is escaped" = {
    module.services.metamcp = {
      credentials.client-token = "/run/secrets/100%c of it";
      settings.listen.token = "credential:client-token";
    };
    has.${service} = [ "LoadCredential=client-token:/run/secrets/100%%c of it" ];
  };
  "clients see only the upstream, and its unit starts first" = {
    module.services.metamcp.upstream = {
      url = "http://127.0.0.1:12009/mcp";
      unit = "mcp-proxy.service";
      apiKeyFile = "/run/secrets/key";
    };
    has.${service} = [
      "After=mcp-proxy.service"
      "IPAddressAllow=localhost"
      "IPAddressDeny=any"
      "LoadCredential=upstream.X-API-Key:/run/secrets/key"
      "MemoryDenyWriteExecute=true"
      "Wants=mcp-proxy.service"
    ];
    lacks.${service} = [ "PrivateNetwork=*" ];
    has.${document} = [
      "[servers.upstream]"
      # metamcp sends no request before it has a session.
      "era = \"legacy\""
      "X-API-Key = \"credential:upstream.X-API-Key\""
      "interval = \"20s\""
      "root = \"passthrough:upstream\""
      "start = \"prewarm\""
      "url = \"http://127.0.0.1:12009/mcp\""
    ];
  };
  "a switch restarts the service in one step, or reloads it" = {
    module = server { };
    has.${service} = [
      "X-Reload-Triggers=*"
      "X-StopIfChanged=false"
    ];
    # A new server does not change the service, and its socket starts first.
    lacks.${service} = [
      "Wants=*"
      "After=*"
    ];
    has.${socket "notes"} = [ "Before=metamcp.service" ];
    has.${unit "notes"} = [
      "Before=metamcp.service"
      "StopPropagatedFrom=metamcp-server-notes.socket"
      "StopPropagatedFrom=metamcp.service"
    ];
  };
  "an upstream may have another name, with another root view" = {
    module.services.metamcp = {
      upstream = {
        name = "cluster";
        url = "http://192.0.2.1:12009/mcp";
      };
      settings.listen.root = "direct";
    };
    has.${document} = [
      "[servers.cluster]"
      "root = \"direct\""
    ];
    lacks.${service} = [
      "After=*"
      "IPAddressDeny=*"
      "Wants=*"
    ];
  };
  "an upstream may be of the modern era" = {
    module.services.metamcp.upstream = {
      url = "http://127.0.0.1:12009/mcp";
      era = "modern";
    };
    has.${document} = [ "era = \"modern\"" ];
  };
  "services.metamcp.servers overrides the options of an upstream" = {
    module.services.metamcp = {
      upstream.url = "http://127.0.0.1:12009/mcp";
      servers.upstream.era = "auto";
    };
    has.${document} = [ "era = \"auto\"" ];
  };
  "an upstream may be a renamed unit of this host" = {
    module = {
      services.metamcp.upstream = {
        url = "http://127.0.0.1:12009/mcp";
        unit = "mcp-aggregator.service";
      };
      systemd.services.mcp-aggregator.serviceConfig.ExecStart = "/opt/aggregator/bin/metamcp";
    };
    has.${service} = [
      "After=mcp-aggregator.service"
      "Wants=mcp-aggregator.service"
    ];
    lacks.${service} = [ "ExecStart=*" ];
    has."etc/systemd/system/mcp-aggregator.service" = [ "ExecStart=/opt/aggregator/bin/metamcp" ];
    has.${document} = [ "root = \"passthrough:upstream\"" ];
  };
  "with only server units the service has no IP sockets and no executable memory" = {
    module = server { };
    has.${service} = [
      "IPAddressDeny=any"
      "MemoryDenyWriteExecute=true"
      "ProcSubset=pid"
      "RestrictAddressFamilies="
      "RestrictAddressFamilies=AF_NETLINK"
      "RestrictAddressFamilies=AF_UNIX"
      "SupplementaryGroups=metamcp-servers"
    ];
    lacks.${service} = [
      "DynamicUser=*"
      # The kernel reports the user of a client only in the client's network namespace.
      "PrivateNetwork=*"
    ];
  };
  "the service can reach an endpoint for embeddings" = {
    module = settings {
      search.embedding = {
        url = "https://192.0.2.1/v1/embeddings";
        model = "all-minilm-l6-v2";
      };
    };
    has.${service} = [ "MemoryDenyWriteExecute=true" ];
    lacks.${service} = [
      "IPAddressDeny=*"
      "PrivateNetwork=*"
    ];
  };
  "a server on another host opens the network, and gets its secrets as credentials" = {
    module.services.metamcp = {
      credentials.tracker-client = "/run/secrets/tracker-client";
      credentials.tracker-key = "/run/secrets/tracker-key";
      servers.tracker = {
        url = "https://mcp.example.org/mcp";
        auth = {
          client_id = "metamcp";
          client_secret = "credential:tracker-client";
        };
        forward_headers = [ "X-Project" ];
        tls = {
          certificate = "/etc/metamcp.pem";
          key = "credential:tracker-key";
        };
      };
    };
    has.${service} = [
      "LoadCredential=tracker-client:/run/secrets/tracker-client"
      "LoadCredential=tracker-key:/run/secrets/tracker-key"
      "MemoryDenyWriteExecute=true"
    ];
    # The families of the package's unit stay: names are resolved over AF_UNIX, AF_NETLINK and IP.
    lacks.${service} = [
      "IPAddressAllow=*"
      "IPAddressDeny=*"
      "RestrictAddressFamilies=*"
    ];
    has.${document} = [
      "[servers.tracker.auth]"
      "client_secret = \"credential:tracker-client\""
      "forward_headers = [\"X-Project\"]"
      "key = \"credential:tracker-key\""
    ];
  };
  "a proxy on this host is all that the service reaches" = {
    module = {
      imports = [
        (settings { service.proxy = "http://127.0.0.1:3128"; })
        { services.metamcp.servers.tracker.url = "https://mcp.example.org/mcp"; }
      ];
    };
    has.${service} = [
      "IPAddressAllow=localhost"
      "IPAddressDeny=any"
    ];
  };
  "a login of a server on this host may be elsewhere" = {
    module.services.metamcp.servers.wiki = {
      url = "http://127.0.0.1:9000/mcp";
      auth.scopes = [ "read" ];
    };
    lacks.${service} = [ "IPAddressDeny=*" ];
  };
  "the sandbox of the service stays relaxed for a child" = {
    module = settings {
      provision.servers.notes = {
        command = "/bin/true";
        description = "Nothing.";
      };
    };
    lacks.${service} = map (directive: "${directive}=*") [
      "IPAddressDeny"
      "MemoryDenyWriteExecute"
      "PrivateNetwork"
      "ProcSubset"
      "RestrictAddressFamilies"
    ];
  };
  "another address restarts the sockets through metamcp-addresses.service" = {
    module = { };
    has."etc/systemd/system/metamcp.socket.d/overrides.conf" = [ "PartOf=metamcp-addresses.service" ];
    has."etc/systemd/system/metamcp-control.socket.d/overrides.conf" = [
      "PartOf=metamcp-addresses.service"
    ];
    has."etc/systemd/system/metamcp-addresses.service" = [
      "RemainAfterExit=true"
      "X-Restart-Triggers=*"
      "X-StopIfChanged=false"
    ];
  };
  "journalctl -x finds the explanations of the package" = {
    module = { };
    has."etc/systemd/system/metamcp-catalog.service" = [
      "ExecStart=/usr/bin/ln -sfT /opt/metamcp/lib/systemd/catalog/metamcp.catalog /usr/local/lib/systemd/catalog/metamcp.catalog"
      "ExecStart=-/usr/bin/journalctl --update-catalog"
    ];
  };
  "percent signs in paths are escaped in units only" = {
    module.services.metamcp = {
      credentials.shared = "/run/secrets/100%u";
      settings.listen.control = "/run/metamcp/100%u.sock";
    };
    has.${service} = [ "LoadCredential=shared:/run/secrets/100%%u" ];
    has."etc/systemd/system/metamcp-control.socket.d/overrides.conf" = [
      "ListenStream=/run/metamcp/100%%u.sock"
    ];
    has.${document} = [ "control = \"/run/metamcp/100%u.sock\"" ];
  };
  "the service runs as the given user, with the restrictions of a dynamic user" = {
    module = {
      services.metamcp = {
        user = "alice";
        group = "users";
      };
      users.users.alice.isNormalUser = true;
    };
    has.${service} = [
      "DynamicUser=false"
      "Group=users"
      "NoNewPrivileges=true"
      "PrivateTmp=true"
      "ProtectSystem=strict"
      "RestrictSUIDSGID=true"
      "User=alice"
    ];
  };
}
