# Tests of generated files: the sandbox of a server unit.
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
  "the preset none hides no files, and limits memory and tasks" = {
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
  "the preset read-only is the default, and allows the network" = {
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
  "the preset no-network lets a server keep files" = {
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
  "the preset strict has the directives of the sample unit" = {
    module = preset "strict";
    holds =
      { files, ... }:
      let
        generated = directives files.${unit "notes"};
        expected = directives sample;
        # Directives that depend on the server, or that NixOS sets itself.
        ignored = [
          "Description"
          "Environment"
          "ExecStart"
          "Sockets"
          "StopPropagatedFrom"
          "SyslogIdentifier"
          "User"
        ];
      in
      removeAttrs generated ignored == removeAttrs expected ignored;
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
  "a bound path is visible, and other paths in its directory stay hidden" = {
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
  "a writable home includes the sockets in /run/user" = {
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
  "addresses, paths and limits of a server are in its unit" = {
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
  "an existing user has the restrictions of a dynamic user" = {
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
