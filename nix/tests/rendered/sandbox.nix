# What the module makes of a configuration: the sandbox of a server.
{
  directives,
  hardened,
  preset,
  sample,
  server,
  unit,
  ...
}:
{
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
}
