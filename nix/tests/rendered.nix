# What the module makes of a configuration: for each, files with the lines that
# they must have, and those that they must not.
#
# A line that ends in "*" stands for all that begin like that.  Gives the
# complaints of each case, none if all is as it should be.
{
  lib,
  # What stub/eval.nix makes of a module.
  evaluate,
  # The text of systemd/metamcp-server-example@.service.
  sample,
}:
let
  inherit (builtins)
    any
    concatMap
    elem
    filter
    isString
    split
    ;

  service = "etc/systemd/system/metamcp.service.d/overrides.conf";
  unit = name: "etc/systemd/system/metamcp-server-${name}@.service";
  socket = name: "etc/systemd/system/metamcp-server-${name}.socket";
  document = "etc/metamcp/metamcp.toml";

  linesOf = text: filter (line: isString line && line != "") (split "\n" text);
  isThere =
    lines: wanted:
    if lib.hasSuffix "*" wanted then
      any (lib.hasPrefix (lib.removeSuffix "*" wanted)) lines
    else
      elem wanted lines;

  complaints =
    {
      module,
      has ? { },
      lacks ? { },
      # Files that are not to be there.
      without ? [ ],
      openPorts ? null,
      # What else must be true of what comes out.
      holds ? (_: true),
      # The messages of assertions are none of ours.
      refused ? false,
    }:
    let
      result = evaluate module;
      inherit (result) files;
      wrong =
        verb: isWrong: expected:
        concatMap (
          file:
          map (line: "${file} ${verb} ${line}") (
            filter (line: isWrong (isThere (linesOf (files.${file} or "")) line)) expected.${file}
          )
        ) (lib.attrNames expected);
    in
    wrong "lacks" (found: !found) has
    ++ wrong "has" (found: found) lacks
    ++ map (file: "${file} is there") (filter (file: files ? ${file}) without)
    ++ lib.optional (
      openPorts != null && result.openPorts != openPorts
    ) "open ports: ${toString result.openPorts}"
    ++ lib.optional (!holds result) "something else is wrong"
    ++ lib.optionals (!refused) (result.failedAssertions ++ result.warnings);

  server = server: { pkgs, ... }: {
    services.metamcp.servers.notes = {
      package = pkgs.bash;
    }
    // server;
  };
  preset = preset: server { sandbox = { inherit preset; }; };
  settings = settings: { services.metamcp = { inherit settings; }; };

  hardened = [
    "CapabilityBoundingSet="
    "LockPersonality=true"
    "PrivateDevices=true"
    "PrivateUsers=true"
    "ProtectProc=invisible"
    "RestrictNamespaces=true"
    "SystemCallFilter=@system-service"
    "SystemCallFilter=~@privileged @resources"
    "UMask=0077"
  ];

  # The directives of [Service], as the other spells them.
  directives =
    text:
    lib.foldl' (
      all: line:
      let
        words = builtins.match "([A-Za-z]+)=(.*)" line;
        key = lib.head words;
        value = builtins.elemAt words 1;
      in
      if words == null then
        all
      else
        all // { ${key} = all.${key} or [ ] ++ [ (if value == "yes" then "true" else value) ]; }
    ) { } (linesOf text);
in
builtins.mapAttrs (_: complaints) {
  "the preset none hides no files, and bounds what a server may take" = {
    module = preset "none";
    has.${unit "notes"} = [
      "DynamicUser=true"
      "Environment=\"HOME=/var/lib/metamcp-servers/notes\""
      "InaccessiblePaths=-/run/user"
      "MemoryMax=1G"
      "ProtectHome=read-only"
      "StateDirectory=metamcp-servers/notes"
      "StateDirectoryMode=0700"
      "TasksMax=256"
      "User=mcp-notes"
      "WorkingDirectory=/var/lib/metamcp-servers/notes"
    ];
    lacks.${unit "notes"} = map (directive: "${directive}=*") [
      "CapabilityBoundingSet"
      "IPAddressDeny"
      "MemoryDenyWriteExecute"
      "PrivateNetwork"
      "ProcSubset"
      "RestrictAddressFamilies"
      "SystemCallFilter"
    ];
  };
  "the preset read-only is the one that a server gets, and leaves it the network" = {
    module = server { };
    has.${unit "notes"} = hardened ++ [
      "DynamicUser=true"
      "Environment=\"HOME=/tmp\""
      "SyslogIdentifier=metamcp-server-notes"
      "ProtectHome=true"
      "RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX"
    ];
    lacks.${unit "notes"} = map (directive: "${directive}=*") [
      "InaccessiblePaths"
      "IPAddressDeny"
      "MemoryDenyWriteExecute"
      "PrivateNetwork"
      "ProcSubset"
      "StateDirectory"
    ];
  };
  "the preset no-network leaves a server what it keeps" = {
    module = preset "no-network";
    has.${unit "notes"} = hardened ++ [
      "After=nss-lookup.target"
      "IPAddressDeny=any"
      "InaccessiblePaths=-/run/dbus"
      "InaccessiblePaths=-/run/nscd"
      "InaccessiblePaths=-/run/systemd/resolve"
      "PrivateNetwork=true"
      "ProtectHome=true"
      "RestrictAddressFamilies=AF_UNIX"
      "StateDirectory=metamcp-servers/notes"
    ];
    lacks.${unit "notes"} = [
      "MemoryDenyWriteExecute=*"
      "ProcSubset=*"
    ];
  };
  "the preset strict says what the sample unit says" = {
    module = preset "strict";
    holds =
      { files, ... }:
      let
        ours = directives files.${unit "notes"};
        theirs = directives sample;
        # What differs from server to server, or is NixOS's own.
        others = [
          "Description"
          "Environment"
          "ExecStart"
          "Sockets"
          "StopPropagatedFrom"
          "SyslogIdentifier"
          "User"
        ];
      in
      removeAttrs ours others == removeAttrs theirs others;
  };
  "an option of the sandbox takes precedence over its preset" = {
    module = server {
      sandbox = {
        preset = "strict";
        jit = true;
        network = true;
        state = true;
        systemInformation = true;
        home = "read-only";
        memoryMax = null;
        tasksMax = null;
      };
    };
    has.${unit "notes"} = [
      "ProtectHome=read-only"
      "RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX"
      "StateDirectory=metamcp-servers/notes"
    ];
    lacks.${unit "notes"} = map (directive: "${directive}=*") [
      "IPAddressDeny"
      "MemoryDenyWriteExecute"
      "MemoryMax"
      "PrivateNetwork"
      "ProcSubset"
      "TasksMax"
    ];
  };
  "what is bound is not hidden, and nothing beside it is shown" = {
    module = server {
      sandbox = {
        home = "read-only";
        network = false;
        readOnlyPaths = [
          "/run/dbus/system_bus_socket"
          "/run/user/1000/notes"
        ];
      };
    };
    has.${unit "notes"} = [
      "InaccessiblePaths=-/run/nscd"
      "InaccessiblePaths=-/run/systemd/resolve"
      "ProtectHome=false"
      "TemporaryFileSystem=/run/user:ro"
    ];
    lacks.${unit "notes"} = [
      "InaccessiblePaths=-/run/dbus"
      "InaccessiblePaths=-/run/user"
    ];
  };
  "a home that may be written to is there with all that runs in it" = {
    module = server { sandbox.home = "writable"; };
    has.${unit "notes"} = [ "ReadWritePaths=-/run/user" ];
    lacks.${unit "notes"} = [ "InaccessiblePaths=*" ];
  };
  "a directive of the unit takes precedence over the sandbox" = {
    module = {
      imports = [ (preset "strict") ];
      systemd.services."metamcp-server-notes@".serviceConfig = {
        MemoryMax = "2G";
        ProcSubset = "all";
      };
    };
    has.${unit "notes"} = [
      "MemoryMax=2G"
      "ProcSubset=all"
    ];
    lacks.${unit "notes"} = [
      "MemoryMax=1G"
      "ProcSubset=pid"
    ];
  };
  "addresses, paths and limits of a server are those that are set" = {
    module.imports = [
      { users.groups.notes = { }; }
      (server {
        sandbox = {
          allowedAddresses = [
            "localhost"
            "192.0.2.0/24"
          ];
          addressFamilies = [ "AF_INET" ];
          readOnlyPaths = [
            "/home/alice/100% mine"
            "/srv/a:b"
          ];
          writablePaths = [ "/srv/notes" ];
          cpuQuota = "50%";
          group = "notes";
        };
      })
    ];
    has.${unit "notes"} = [
      "BindPaths=/srv/notes"
      "BindReadOnlyPaths=\"/home/alice/100%% mine\""
      "BindReadOnlyPaths=\"/srv/a:b\""
      "CPUQuota=50%"
      "Group=notes"
      "IPAddressAllow=192.0.2.0/24"
      "IPAddressAllow=localhost"
      "IPAddressDeny=any"
      "ProtectHome=tmpfs"
      "RestrictAddressFamilies=AF_INET"
    ];
  };
  "a user of its own keeps what a dynamic one brings" = {
    module.imports = [
      { users.users.alice.isNormalUser = true; }
      (server {
        sandbox = {
          user = "alice";
          home = "writable";
        };
      })
    ];
    has.${unit "notes"} = [
      "NoNewPrivileges=true"
      "PrivateTmp=true"
      "ProtectHome=false"
      "ProtectSystem=strict"
      "ReadWritePaths=-/home"
      "RestrictSUIDSGID=true"
      "User=alice"
    ];
    lacks.${unit "notes"} = [
      "DynamicUser=*"
      "RemoveIPC=*"
    ];
  };
  "a name of 40 characters has a user of 31" = {
    module = { pkgs, ... }: {
      services.metamcp = {
        servers.a123456789012345678901234567890123456789.package = pkgs.bash;
        # Where names of tools have no prefix.
        settings.listen.root = "meta";
      };
    };
    has.${unit "a123456789012345678901234567890123456789"} = [
      "User=mcp-a12345678901234567-${
        builtins.substring 0 8 (builtins.hashString "sha256" "a123456789012345678901234567890123456789")
      }"
    ];
    has.${document} = [
      "socket = \"/run/metamcp-servers/a123456789012345678901234567890123456789.sock\""
    ];
  };
  "a socket takes as many connections as there are, and those that end" = {
    module = server {
      sharing = "session";
      max_connections = 8;
    };
    has.${socket "notes"} = [
      "Accept=true"
      "MaxConnections=18"
      "SocketGroup=metamcp-servers"
      "SocketMode=0660"
    ];
    has.${document} = [
      "max_connections = 8"
      "sharing = \"session\""
    ];
  };
  "a socket takes as many connections as settings say in the end" = {
    module = {
      imports = [ (server { max_connections = 8; }) ];
      services.metamcp.settings.servers.notes = {
        sharing = "session";
        max_connections = 64;
      };
    };
    has.${socket "notes"} = [ "MaxConnections=130" ];
    has.${document} = [ "max_connections = 64" ];
  };
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
  "values of env are literal, and a secret is a credential of the unit" = {
    module = {
      imports = [
        (server {
          cwd = "/srv/100%";
          env = {
            PATH = "/opt/bin";
            SHARE = "100% $HOME \"quoted\"";
            SHARED_TOKEN = "credential:shared";
          };
          credentials.TOKEN = "/run/secrets/100%";
        })
      ];
      services.metamcp.credentials.shared = "/run/secrets/shared";
    };
    has.${unit "notes"} = [
      "Environment=\"PATH=/opt/bin\""
      "Environment=\"SHARE=100%% $HOME \\\"quoted\\\"\""
      "LoadCredential=SHARED_TOKEN:/run/secrets/shared"
      "LoadCredential=TOKEN:/run/secrets/100%%"
      "WorkingDirectory=/srv/100%%"
    ];
    lacks.${service} = [
      "LoadCredential=TOKEN:*"
      "LoadCredential=SHARED_TOKEN:*"
      "LoadCredential=shared:*"
    ];
    lacks.${document} = [ "[servers.notes.env]" ];
  };
  "a secret of a unit that the service refers to as well is given to both" = {
    module = {
      imports = [ (server { env.TOKEN = "credential:shared"; }) ];
      services.metamcp = {
        credentials = {
          shared = "/run/secrets/shared";
          own = "/run/secrets/own";
        };
        settings.servers.cluster = {
          url = "http://127.0.0.1:12009/mcp";
          headers.Authorization = "credential:shared";
        };
      };
    };
    has.${unit "notes"} = [ "LoadCredential=TOKEN:/run/secrets/shared" ];
    has.${service} = [
      "LoadCredential=own:/run/secrets/own"
      "LoadCredential=shared:/run/secrets/shared"
    ];
  };
  "a server that is spawned is told by its command, and its secrets are the service's" = {
    module =
      { pkgs, ... }:
      {
        services.metamcp.servers.notes = {
          package = pkgs.bash;
          isolation = "spawn";
          args = [ "-x" ];
          extraPackages = [ pkgs.metamcp ];
          env.GREETING = "good morning";
          credentials.TOKEN = "/run/secrets/token";
        };
      };
    without = [
      (socket "notes")
      (unit "notes")
    ];
    has.${service} = [
      "Environment=\"PATH=/opt/metamcp/bin:*"
      "LoadCredential=notes.TOKEN:/run/secrets/token"
    ];
    has.${document} = [
      "GREETING = \"good morning\""
      "TOKEN = \"credential:notes.TOKEN\""
      "args = [\"-x\"]"
      "command = \"/usr/bin/bash\""
    ];
  };
  "secrets of a url are headers" = {
    module.services.metamcp.servers.cluster = {
      url = "http://127.0.0.1:12009/mcp";
      credentials.X-API-Key = "/run/secrets/key";
    };
    without = [ (socket "cluster") ];
    has.${service} = [ "LoadCredential=cluster.X-API-Key:/run/secrets/key" ];
    has.${document} = [ "X-API-Key = \"credential:cluster.X-API-Key\"" ];
  };
  "settings take precedence over what a declared server says" = {
    module = {
      imports = [
        (server {
          start = "eager";
          health.interval = "5s";
        })
      ];
      services.metamcp.settings.servers.notes = {
        start = "lazy";
        health.interval = "9s";
      };
    };
    has.${document} = [
      "interval = \"9s\""
      "start = \"lazy\""
    ];
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
  "with units alone the service has neither a network nor executable memory" = {
    module = server { };
    has.${service} = [
      "IPAddressDeny=any"
      "MemoryDenyWriteExecute=true"
      "PrivateNetwork=true"
      "ProcSubset=pid"
      "RestrictAddressFamilies="
      "RestrictAddressFamilies=AF_UNIX"
      "SupplementaryGroups=metamcp-servers"
    ];
    lacks.${service} = [ "DynamicUser=*" ];
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
  "the firewall is closed" = {
    module = { };
    openPorts = [ ];
  };
  "the firewall is opened on demand" = {
    module.services.metamcp = {
      openFirewall = true;
      settings.listen.http = "[::]:12111";
    };
    openPorts = [ 12111 ];
    refused = true;
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
  "Claude Code is told where the service is" = {
    module.services.metamcp = {
      claudeCode.enable = true;
      settings.listen.http = "127.0.0.1:12111";
    };
    has."etc/metamcp/mcp.json" = [
      ''{"mcpServers":{"metamcp":{"type":"http","url":"http://127.0.0.1:12111/"}}}''
    ];
  };
  "Claude Code is told to bring the token, and of an address that it can connect to" = {
    module.services.metamcp = {
      claudeCode.enable = true;
      credentials.client-token = "/run/secrets/client-token";
      settings.listen = {
        http = "[::]:12111";
        tls = {
          certificate = "/etc/certificate.pem";
          key = "/run/secrets/key.pem";
        };
        token = "credential:client-token";
      };
    };
    has."etc/metamcp/mcp.json" = [
      ''{"mcpServers":{"metamcp":{"headers":{"Authorization":"Bearer ''${METAMCP_TOKEN}"},"type":"http","url":"https://[::1]:12111/"}}}''
    ];
  };
  "Claude Code is told nothing unless that is asked for" = {
    module = { };
    without = [ "etc/metamcp/mcp.json" ];
  };
}
