# The sandbox of a server unit: the options, the presets, and the directives of the
# unit.
{ lib }:
let
  inherit (lib) mkOption types;

  presets = {
    # The server may do what any program of an unprivileged user may do.
    none = {
      hardened = false;
      home = "read-only";
      jit = true;
      network = true;
      state = true;
      systemInformation = true;
    };
    # Without MemoryDenyWriteExecute=, because Node and all other JIT compilers exit
    # at their start under it. Without PrivateNetwork= and IPAddressDeny=, because
    # most servers need the network.
    read-only = {
      hardened = true;
      home = "hidden";
      jit = true;
      network = true;
      state = false;
      systemInformation = true;
    };
    # Without MemoryDenyWriteExecute= for the same reason. Without ProcSubset=pid,
    # because runtimes size their thread pools and heaps by /proc/stat and
    # /proc/meminfo, which it hides.
    no-network = {
      hardened = true;
      home = "hidden";
      jit = true;
      network = false;
      state = true;
      systemInformation = true;
    };
    # All restrictions, as in systemd/metamcp-server-example@.service.
    strict = {
      hardened = true;
      home = "hidden";
      jit = false;
      network = false;
      state = false;
      systemInformation = false;
    };
  };

  # The restrictions that do not affect a server that works with files and the
  # network.
  #
  # RootDirectory= and similar directives are not here, because they would hide
  # interpreters, git and certificates. ProtectSystem=strict, PrivateTmp=,
  # NoNewPrivileges=, RemoveIPC= and RestrictSUIDSGID= are not here, because
  # DynamicUser= implies them.
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
    # ProtectProc= mounts a new /run, which ProtectSystem=strict does not cover.
    ReadOnlyPaths = "/run";
    RestrictNamespaces = true;
    RestrictRealtime = true;
    SystemCallArchitectures = "native";
    # A refused call fails instead of killing the process, because runtimes probe calls.
    SystemCallErrorNumber = "EPERM";
    SystemCallFilter = [
      "@system-service"
      "~@privileged @resources"
    ];
    UMask = "0077";
  };

  # One user name for all instances of a server, so that they share its state. systemd
  # allows at most 31 characters. The prefix is not `metamcp-`, because a server named
  # `service` would then have the user of the service, `metamcp-service`.
  userName =
    name:
    if builtins.stringLength name <= 27 then
      "mcp-${name}"
    else
      "mcp-${builtins.substring 0 18 name}-${builtins.substring 0 8 (builtins.hashString "sha256" name)}";

  stateDirectory = name: "metamcp-servers/${name}";

  # A path, quoted for a directive with several words.
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
      import ./static-user.nix sandbox.user;

  home = {
    hidden = sandbox: {
      # With `true`, the server could not reach a path that is bound below a home.
      # `tmpfs` mounts an empty file system there instead.
      ProtectHome = if lib.any isInHome (bound sandbox) then "tmpfs" else true;
    };
    # The files of the homes, but not the sockets in /run/user. Through those, a
    # server could command the user's manager, desktop and agents, which run outside
    # of its sandbox.
    read-only =
      sandbox:
      if lib.any isInRuntime (bound sandbox) then
        # As for `hidden`. ProtectSystem=strict keeps all homes read-only.
        {
          ProtectHome = false;
          TemporaryFileSystem = "/run/user:ro";
        }
      else
        {
          InaccessiblePaths = [ "-/run/user" ];
          ProtectHome = "read-only";
        };
    # Without ReadWritePaths=, ProtectSystem=strict would keep the homes read-only.
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
  # Nix copies a path value into the store when a string interpolates it. toString
  # does not.
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

  # The directories with sockets of services that resolve names. A server without a
  # network could send data to other hosts through their DNS queries.
  resolvers = [
    "/run/dbus"
    "/run/nscd"
    "/run/systemd/resolve"
  ];
  # The resolvers to hide: not those with a bound path, which would be hidden too.
  hiddenResolvers =
    sandbox: lib.filter (directory: !lib.any (isIn directory) (bound sandbox)) resolvers;

  # An option whose default depends on the preset; `text` documents the default.
  option = attributes: text: mkOption (attributes // { defaultText = lib.literalMD text; });
in
{
  inherit stateDirectory userName;

  # True if the option `home` hides a path from the server.
  isHidden =
    sandbox: path:
    (sandbox.home == "hidden" && isInHome path || sandbox.home == "read-only" && isInRuntime path)
    && !lib.any (shown: isIn shown path || isIn path shown) (bound sandbox);
  # The most restrictive value of `home` that shows a path.
  homeThatShows = path: if isInRuntime path then "writable" else "read-only";

  # The options, as a submodule.
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
            The defaults of the other options of the sandbox:

            |                     | `none`      | `read-only` | `no-network` | `strict` |
            |---------------------|-------------|-------------|--------------|----------|
            | hardening           | no          | yes         | yes          | yes      |
            | `network`           | yes         | yes         | no           | no       |
            | `state`             | yes         | no          | yes          | no       |
            | `jit`               | yes         | yes         | yes          | no       |
            | `systemInformation` | yes         | yes         | yes          | no       |
            | `home`              | `read-only` | `hidden`    | `hidden`     | `hidden` |

            Hardening denies access to capabilities, devices, namespaces, the
            clock, the settings and modules of the kernel, the processes of other
            users, and the system calls for them. In every preset, the server has
            its own user, and all files are read-only except its state and its
            {file}`/tmp`.

            For directives without an option here, set
            {option}`systemd.services."metamcp-server-NAME@".serviceConfig`.
          '';
        };

        network = option {
          type = types.bool;
          default = preset.network;
          example = false;
          description = ''
            Whether the server can reach the network, including the network of
            this host. If `false`, it has an empty network namespace, and cannot
            reach D-Bus and the name services of this host. It can still reach
            other Unix sockets, as far as its user may.
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
            The only addresses and networks that the server can reach, in the
            syntax of `IPAddressAllow=`. If `null`, all.
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
          description = "The address families of the sockets that the server may create. If the list is empty, all.";
        } "`AF_UNIX`, with `network` also `AF_INET`, `AF_INET6` and `AF_NETLINK`; all in the preset `none`";

        state = option {
          type = types.bool;
          default = preset.state;
          example = true;
          description = ''
            Whether the server can keep files in
            {file}`/var/lib/metamcp-servers/NAME`. This directory is then its
            home and its working directory. If `false`, the home of a dynamic
            user is a private {file}`/tmp`, which systemd removes with the
            instance.
          '';
        } "`true` in the presets `none` and `no-network`";

        jit = option {
          type = types.bool;
          default = preset.jit;
          example = false;
          description = ''
            Whether the server may map memory that is both writable and
            executable. Node, browsers and all other JIT compilers need it, and
            exit at their start without it.
          '';
        } "`true`, except in the preset `strict`";

        systemInformation = option {
          type = types.bool;
          default = preset.systemInformation;
          example = false;
          description = ''
            Whether the server sees {file}`/proc/meminfo`, {file}`/proc/stat`
            and similar files. Runtimes size their heaps and thread pools by
            them.
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
            The access to {file}`/home` and {file}`/root`, within the permissions
            of the server's user. `hidden`: none. `read-only`: the server can
            read files. `writable`: the server can read and write files. Only
            with `writable` does it see {file}`/run/user`, because the sockets
            there let it do everything that the user may do.
          '';
        } "`\"hidden\"`, and `\"read-only\"` in the preset `none`";

        readOnlyPaths = mkOption {
          type = types.listOf types.path;
          default = [ ];
          example = [ "/home/alice/notes" ];
          description = ''
            Files and directories that the server can read, even below a hidden
            {file}`/home`. Its user needs permission to read them. If one of them
            does not exist, the server does not start.
          '';
        };

        writablePaths = mkOption {
          type = types.listOf types.path;
          default = [ ];
          example = [ "/srv/notes" ];
          description = ''
            Files and directories that the server can read and write, even below
            a hidden {file}`/home`. Its user needs permission for that: see
            `user` and `group`. If one of them does not exist, the server does
            not start.
          '';
        };

        memoryMax = mkOption {
          type = types.nullOr (types.strMatching "[0-9]+[KMGT]?|[0-9]+%");
          default = "1G";
          example = "512M";
          description = ''
            The memory that the processes of one instance may use together: in
            bytes, with `K`, `M`, `G` or `T`, or as a percentage of the host's
            memory. The kernel kills an instance that uses more. If `null`, no
            limit.
          '';
        };

        tasksMax = mkOption {
          type = types.nullOr types.ints.positive;
          default = 256;
          example = 64;
          description = "The largest number of processes and threads of one instance. If `null`, no limit.";
        };

        cpuQuota = mkOption {
          type = types.nullOr (types.strMatching "[0-9]+%");
          default = null;
          example = "150%";
          description = ''
            The processor time that one instance may use. `"100%"` is one
            processor. If `null`, no limit.
          '';
        };

        user = mkOption {
          type = types.nullOr types.str;
          default = null;
          example = "alice";
          description = ''
            The user that the server runs as. This user must exist. If `null`,
            systemd allocates one user for all instances of the server
            (`DynamicUser=`). Do not set `DynamicUser=false` in `serviceConfig`
            instead: that would also turn off what `DynamicUser=` implies, such as
            the read-only file system.
          '';
        };

        group = mkOption {
          type = types.nullOr types.str;
          default = null;
          example = "notes";
          description = "The group that the server runs as. This group must exist. If `null`, the primary group of the user.";
        };
      };
    };

  # The directives in [Service] for a sandbox.
  directives =
    name: sandbox:
    let
      inherit (sandbox) network;
      isRestricted = network && sandbox.allowedAddresses != null;
      homeDirectives = home.${sandbox.home} sandbox;
      inaccessible =
        homeDirectives.InaccessiblePaths or [ ]
        ++ lib.optionals (!network) (map (directory: "-${directory}") (hiddenResolvers sandbox));
    in
    lib.optionalAttrs presets.${sandbox.preset}.hardened hardening
    // identity name sandbox
    // homeDirectives
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
