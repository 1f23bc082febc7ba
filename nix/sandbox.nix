# The sandbox of a server that is a unit of its own: the options, what the
# presets say, and the directives that are made of them.
{ lib }:
let
  inherit (lib) mkOption types;

  presets = {
    # For a server that is to do what any program of a user without rights may.
    none = {
      hardened = false;
      home = "read-only";
      jit = true;
      network = true;
      state = true;
      systemInformation = true;
    };
    # Without MemoryDenyWriteExecute=, which ends Node and every other JIT
    # compiler at its start, and without PrivateNetwork= and IPAddressDeny=,
    # because most servers exist to reach something.
    read-only = {
      hardened = true;
      home = "hidden";
      jit = true;
      network = true;
      state = false;
      systemInformation = true;
    };
    # Without MemoryDenyWriteExecute= for the same reason, and without
    # ProcSubset=pid, which hides the /proc/stat and /proc/meminfo that runtimes
    # size their thread pools and heaps by.
    no-network = {
      hardened = true;
      home = "hidden";
      jit = true;
      network = false;
      state = true;
      systemInformation = true;
    };
    # All of it: systemd/metamcp-server-example@.service.
    strict = {
      hardened = true;
      home = "hidden";
      jit = false;
      network = false;
      state = false;
      systemInformation = false;
    };
  };

  # What no server needs that works with files and the network.
  #
  # Not here, because it would take interpreters, git and certificates away:
  # RootDirectory= and such.  Not here, because DynamicUser= brings it:
  # ProtectSystem=strict, PrivateTmp=, NoNewPrivileges=, RemoveIPC= and
  # RestrictSUIDSGID=.
  hardening = {
    CapabilityBoundingSet = "";
    LockPersonality = true;
    PrivateDevices = true;
    PrivateIPC = true;
    PrivateUsers = true;
    ProtectClock = true;
    ProtectControlGroups = true;
    ProtectHostname = true;
    ProtectKernelLogs = true;
    ProtectKernelModules = true;
    ProtectKernelTunables = true;
    ProtectProc = "invisible";
    # That brings a /run of which ProtectSystem=strict knows nothing.
    ReadOnlyPaths = "/run";
    RestrictNamespaces = true;
    RestrictRealtime = true;
    SystemCallArchitectures = "native";
    # A refused call fails instead of killing its caller: runtimes probe.
    SystemCallErrorNumber = "EPERM";
    SystemCallFilter = [
      "@system-service"
      "~@privileged @resources"
    ];
    UMask = "0077";
  };

  # One name for all instances of a server, so that they share what they keep,
  # of at most 31 characters: that many systemd allows.  Not metamcp-NAME, which
  # is the service's own for a server called `service`.
  userName =
    name:
    if builtins.stringLength name <= 27 then
      "mcp-${name}"
    else
      "mcp-${builtins.substring 0 18 name}-${builtins.substring 0 8 (builtins.hashString "sha256" name)}";

  stateDirectory = name: "metamcp-servers/${name}";

  # A path in a directive that takes several words.
  quoted =
    path:
    let
      escaped = import ./escape-specifiers.nix { inherit lib; } (toString path);
    in
    if builtins.match "[A-Za-z0-9/._%@+-]*" escaped != null then escaped else builtins.toJSON escaped;

  identity =
    name: sandbox:
    if sandbox.user == null then
      {
        DynamicUser = true;
        User = userName name;
      }
    else
      import ./user.nix sandbox.user;

  home = {
    hidden = sandbox: {
      # Nobody gets through the one to what is bound below it, and the other
      # takes an empty file system.
      ProtectHome = if lib.any isInHome (bound sandbox) then "tmpfs" else true;
    };
    # Files, and not the sockets in /run/user: through those a user's manager,
    # desktop and agents take commands, with no sandbox at all.
    read-only =
      sandbox:
      if lib.any isInRuntime (bound sandbox) then
        # As above.  ProtectSystem=strict keeps all homes read-only.
        {
          ProtectHome = false;
          TemporaryFileSystem = "/run/user:ro";
        }
      else
        {
          InaccessiblePaths = [ "-/run/user" ];
          ProtectHome = "read-only";
        };
    # ProtectSystem=strict alone would keep it read-only.
    writable = _: {
      ProtectHome = false;
      ReadWritePaths = [
        "-/home"
        "-/root"
        "-/run/user"
      ];
    };
  };

  bound = sandbox: sandbox.readOnlyPaths ++ sandbox.writablePaths;
  # As texts: a path that is put into one would be copied into the Nix store.
  isIn =
    directory: path: lib.hasPrefix "${lib.removeSuffix "/" (toString directory)}/" "${toString path}/";
  isInRuntime = isIn "/run/user";
  isInHome =
    path:
    lib.any (directory: isIn directory path) [
      "/home"
      "/root"
      "/run/user"
    ];

  # Who asks others on this host by a socket that is a file needs no network: there
  # names are looked up, also in the DNS, which is a way out.
  resolvers = [
    "/run/dbus"
    "/run/nscd"
    "/run/systemd/resolve"
  ];
  # Less what is bound, which would be hidden with them.
  hiddenResolvers =
    sandbox: lib.filter (directory: !lib.any (isIn directory) (bound sandbox)) resolvers;

  # An option with a default that the preset sets, as this text says.
  option = attributes: text: mkOption (attributes // { defaultText = lib.literalMD text; });
in
{
  inherit stateDirectory userName;

  # Whether a server does not see a path because of how much of the homes it sees.
  isHidden =
    sandbox: path:
    (sandbox.home == "hidden" && isInHome path || sandbox.home == "read-only" && isInRuntime path)
    && !lib.any (shown: isIn shown path || isIn path shown) (bound sandbox);
  # The least that `home` must be to show it.
  homeThatShows = path: if isInRuntime path then "writable" else "read-only";

  # The options: a submodule.
  module =
    { config, ... }:
    let
      preset = presets.${config.preset};
    in
    {
      options = {
        preset = mkOption {
          type = types.enum (lib.attrNames presets);
          default = "read-only";
          example = "strict";
          description = ''
            What the other options of the sandbox are by default.

            |                     | `none`      | `read-only` | `no-network` | `strict` |
            |---------------------|-------------|-------------|--------------|----------|
            | hardening           | no          | yes         | yes          | yes      |
            | `network`           | yes         | yes         | no           | no       |
            | `state`             | yes         | no          | yes          | no       |
            | `jit`               | yes         | yes         | yes          | no       |
            | `systemInformation` | yes         | yes         | yes          | no       |
            | `home`              | `read-only` | `hidden`    | `hidden`     | `hidden` |

            Hardening takes away capabilities, devices, namespaces, the clock,
            the kernel's settings and modules, other users' processes, and the
            system calls for such things. In each of them the server has a user
            of its own, and apart from its state and its {file}`/tmp` all files
            are read-only.

            For all that is not an option here, define
            {option}`systemd.services."metamcp-server-NAME@".serviceConfig`.
          '';
        };

        network = option {
          type = types.bool;
          default = preset.network;
          example = false;
          description = ''
            Whether the server reaches the network, of this host too. Without,
            it has a network of its own in which there is nothing, and neither
            D-Bus nor anybody else who would look names up for it. Other sockets
            that are files it reaches, as far as its user may.
          '';
        } "`true` in the presets `none` and `read-only`";

        allowedAddresses = mkOption {
          type = types.nullOr (types.listOf types.str);
          default = null;
          example = [
            "localhost"
            "192.0.2.0/24"
          ];
          description = ''
            The only addresses and networks that the server can reach, as
            `IPAddressAllow=` takes them; all if `null`.
          '';
        };

        addressFamilies = option {
          type = types.listOf (types.strMatching "AF_[A-Z0-9_]+");
          default =
            if !preset.hardened then
              [ ]
            else
              # AF_NETLINK is how runtimes list network interfaces.
              lib.optionals config.network [
                "AF_INET"
                "AF_INET6"
                "AF_NETLINK"
              ]
              ++ [ "AF_UNIX" ];
          example = [
            "AF_INET"
            "AF_UNIX"
          ];
          description = "Kinds of sockets that the server may make; all if the list is empty.";
        } "`AF_UNIX`, with `network` also `AF_INET`, `AF_INET6` and `AF_NETLINK`; all in the preset `none`";

        state = option {
          type = types.bool;
          default = preset.state;
          example = true;
          description = ''
            Whether the server keeps files: it may write to
            {file}`/var/lib/metamcp-servers/NAME`, which is its home and its
            working directory. Without, the home of a user that systemd makes is
            a {file}`/tmp` that is gone with the instance.
          '';
        } "`true` in the presets `none` and `no-network`";

        jit = option {
          type = types.bool;
          default = preset.jit;
          example = false;
          description = ''
            Whether the server may have memory that is both writable and
            executable, without which Node, browsers and every other JIT
            compiler end at their start.
          '';
        } "`true`, except in the preset `strict`";

        systemInformation = option {
          type = types.bool;
          default = preset.systemInformation;
          example = false;
          description = ''
            Whether the server sees {file}`/proc/meminfo`, {file}`/proc/stat`
            and the like, by which runtimes size their heaps and thread pools.
          '';
        } "`true`, except in the preset `strict`";

        home = option {
          type = types.enum [
            "hidden"
            "read-only"
            "writable"
          ];
          default = preset.home;
          example = "read-only";
          description = ''
            What the server sees of {file}`/home` and {file}`/root`: nothing,
            files that it may read, or files that it may also write, as far as
            its user may. It sees {file}`/run/user` only if these are
            `writable`: the sockets there let it do whatever the user may.
          '';
        } "`\"hidden\"`, and `\"read-only\"` in the preset `none`";

        readOnlyPaths = mkOption {
          type = types.listOf types.path;
          default = [ ];
          example = [ "/home/alice/notes" ];
          description = ''
            Files and directories that the server sees wherever they are, also
            below a hidden {file}`/home`. Its user must be allowed to read them.
            Without one of them it does not start.
          '';
        };

        writablePaths = mkOption {
          type = types.listOf types.path;
          default = [ ];
          example = [ "/srv/notes" ];
          description = ''
            Files and directories that the server sees and may write to,
            wherever they are. Its user must be allowed to: see `user` and
            `group`. Without one of them it does not start.
          '';
        };

        memoryMax = mkOption {
          type = types.nullOr (types.strMatching "[0-9]+[KMGT]?|[0-9]+%");
          default = "1G";
          example = "512M";
          description = ''
            How much memory the processes of one instance may have together, in
            bytes, with `K`, `M`, `G` or `T`, or as a share of the host's: the
            kernel ends the instance at more. No bound if `null`.
          '';
        };

        tasksMax = mkOption {
          type = types.nullOr types.ints.positive;
          default = 256;
          example = 64;
          description = "How many processes and threads one instance may have; no bound if `null`.";
        };

        cpuQuota = mkOption {
          type = types.nullOr (types.strMatching "[0-9]+%");
          default = null;
          example = "150%";
          description = ''
            How much time of a processor one instance may take, `"100%"` being
            that of one; no bound if `null`.
          '';
        };

        user = mkOption {
          type = types.nullOr types.str;
          default = null;
          example = "alice";
          description = ''
            User that the server runs as, who must exist. If `null`, one that
            systemd makes for all instances of the server (`DynamicUser=`).
            Named here, and not in `serviceConfig` with `DynamicUser=false`, which
            would also end what that implies, as a read-only file system.
          '';
        };

        group = mkOption {
          type = types.nullOr types.str;
          default = null;
          example = "notes";
          description = "Group that the server runs as, which must exist; that of its user if `null`.";
        };
      };
    };

  # What [Service] says of it.
  directives =
    name: sandbox:
    let
      inherit (sandbox) network;
      isRestricted = network && sandbox.allowedAddresses != null;
      homed = home.${sandbox.home} sandbox;
      inaccessible =
        homed.InaccessiblePaths or [ ]
        ++ lib.optionals (!network) (map (directory: "-${directory}") (hiddenResolvers sandbox));
    in
    lib.optionalAttrs presets.${sandbox.preset}.hardened hardening
    // identity name sandbox
    // homed
    // lib.optionalAttrs (inaccessible != [ ]) { InaccessiblePaths = inaccessible; }
    // lib.optionalAttrs (sandbox.group != null) { Group = sandbox.group; }
    // lib.optionalAttrs sandbox.state {
      StateDirectory = stateDirectory name;
      StateDirectoryMode = "0700";
    }
    // lib.optionalAttrs (!network) { PrivateNetwork = true; }
    // lib.optionalAttrs (!network || isRestricted) { IPAddressDeny = "any"; }
    // lib.optionalAttrs (isRestricted && sandbox.allowedAddresses != [ ]) {
      IPAddressAllow = sandbox.allowedAddresses;
    }
    // lib.optionalAttrs (sandbox.addressFamilies != [ ]) {
      RestrictAddressFamilies = toString sandbox.addressFamilies;
    }
    // lib.optionalAttrs (!sandbox.jit) { MemoryDenyWriteExecute = true; }
    // lib.optionalAttrs (!sandbox.systemInformation) { ProcSubset = "pid"; }
    // lib.optionalAttrs (sandbox.readOnlyPaths != [ ]) {
      BindReadOnlyPaths = map quoted sandbox.readOnlyPaths;
    }
    // lib.optionalAttrs (sandbox.writablePaths != [ ]) {
      BindPaths = map quoted sandbox.writablePaths;
    }
    // lib.optionalAttrs (sandbox.memoryMax != null) { MemoryMax = sandbox.memoryMax; }
    // lib.optionalAttrs (sandbox.tasksMax != null) { TasksMax = sandbox.tasksMax; }
    // lib.optionalAttrs (sandbox.cpuQuota != null) { CPUQuota = sandbox.cpuQuota; };
}
