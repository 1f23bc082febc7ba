# What the module makes of a configuration: the service itself, and its sockets.
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
  "the control socket belongs to those who may use it" = {
    module.imports = [
      { users.groups.operators = { }; }
      (settings { listen.control_group = "operators"; })
    ];
    has."etc/systemd/system/metamcp-control.socket.d/overrides.conf" = [ "SocketGroup=operators" ];
  };
  "the path of a credential is what it is" = {
    module.services.metamcp = {
      credentials.client-token = "/run/secrets/100%c of it";
      settings.listen.token = "credential:client-token";
    };
    has.${service} = [ "LoadCredential=client-token:/run/secrets/100%%c of it" ];
  };
  "an upstream is all that clients see, and its unit is started first" = {
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
      # Nothing is sent to it before it has a session.
      "era = \"legacy\""
      "X-API-Key = \"credential:upstream.X-API-Key\""
      "interval = \"20s\""
      "root = \"passthrough:upstream\""
      "start = \"prewarm\""
      "url = \"http://127.0.0.1:12009/mcp\""
    ];
  };
  "a switch restarts the service at once, or reloads it" = {
    module = server { };
    has.${service} = [
      "X-Reload-Triggers=*"
      "X-StopIfChanged=false"
    ];
    # A further server does not change the service, and its socket is there first.
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
  "an upstream may be called something else, beside another root" = {
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
  "what is said of an upstream among the servers has the last word" = {
    module.services.metamcp = {
      upstream.url = "http://127.0.0.1:12009/mcp";
      servers.upstream.era = "auto";
    };
    has.${document} = [ "era = \"auto\"" ];
  };
  "an upstream may be a unit of this host that was renamed" = {
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
  "with units alone the service makes no socket of IP and has no executable memory" = {
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
      # The kernel tells the user of a client in the client's namespace alone.
      "PrivateNetwork=*"
    ];
  };
  "an endpoint for embeddings is reached" = {
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
  "a child keeps what it needs of the service's sandbox" = {
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
  "the sockets are opened anew with what restarts for another address" = {
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
  "a path with a percent sign is that path" = {
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
  "the service runs as the user that is set, with what a dynamic one brings" = {
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
