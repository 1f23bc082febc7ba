# The NixOS module: one metamcp for the host.
{
  config,
  lib,
  options,
  pkgs,
  ...
}:
let
  inherit (lib) mkOption types;

  cfg = config.services.metamcp;
  inherit (cfg) settings;

  tomlFile = import ./config-file.nix { inherit lib pkgs; };
  inherit (tomlFile) format;
  configFile = tomlFile.file cfg.package settings;
  serverOptions = import ./server-options.nix { inherit format lib; };
  sandbox = import ./sandbox.nix { inherit lib; };
  serverUnit = import ./server-unit.nix { inherit lib sandbox serverOptions; };
  serviceDirectives = import ./service-unit.nix { inherit lib; };
  escapeSpecifiers = import ./escape-specifiers.nix { inherit lib; };
  checked = import ./assertions.nix { inherit lib; } {
    inherit cfg;
    inherit (config.users) groups users;
    inherit (config.systemd) services;
    serviceDefinitions = options.systemd.services.definitionsWithLocations;
  };

  # The servers that run in units, and all others.
  inherit (import ./declared-servers.nix { inherit lib; } cfg) isUnit;
  inUnits = lib.filterAttrs (_: isUnit) cfg.servers;
  others = lib.filterAttrs (_: server: !isUnit server) cfg.servers;
  serverUnits = lib.mapAttrs (serverUnit.units {
    inherit (cfg) credentials;
    effective = settings.servers;
  }) inUnits;
  # The credentials that only server units refer to. The service does not load them.
  credentialsOfUnits =
    let
      credentialsOfService = tomlFile.references settings;
    in
    lib.filter (name: !lib.elem name credentialsOfService) (
      tomlFile.references (lib.mapAttrsToList (_: server: server.env) inUnits)
    );

  controlGroup =
    if settings.listen.control_group != null then settings.listen.control_group else "metamcp";

  hasMetrics = settings.listen.metrics != null;
  catalog = "/usr/local/lib/systemd/catalog/metamcp.catalog";

  startsAtBoot = lib.any (server: server.start != "lazy") (lib.attrValues settings.servers);
in
{
  imports = [
    ./claude-code.nix
    ./metrics.nix
    ./upstream.nix
  ];

  options.services.metamcp = {
    enable = lib.mkEnableOption "metamcp, which runs each MCP server once and serves it to every client";

    package = lib.mkPackageOption pkgs "metamcp" { };

    servers = mkOption {
      type = types.attrsOf (
        types.submodule [
          serverOptions.module
          serverUnit.module
        ]
      );
      default = { };
      example = lib.literalExpression ''
        {
          time.package = pkgs.mcp-server-time;
          files = {
            package = pkgs.mcp-server-filesystem;
            args = [ "/srv/notes" ];
            sandbox.preset = "no-network";
          };
          gitea = {
            package = pkgs.gitea-mcp-server;
            args = [ "-t" "stdio" ];
            credentials.GITEA_ACCESS_TOKEN = "/run/secrets/gitea-token";
          };
          cluster.url = "http://127.0.0.1:12009/mcp";
        }
      '';
      description = ''
        The MCP servers, by name. A name has 1 to 40 letters, digits, `-` and
        single `_`, with a letter or digit at both ends.

        A server with a `command` runs in its own systemd unit, an instance of
        the template {file}`metamcp-server-NAME@.service`. systemd starts the
        instance when metamcp connects to {file}`metamcp-server-NAME.socket`.
      '';
    };

    settings = mkOption {
      type = types.submodule (import ./settings.nix { inherit format lib; });
      default = { };
      example = {
        listen.http = "127.0.0.1:12021";
        pool.size = 50;
      };
      description = ''
        The contents of {file}`/etc/metamcp/metamcp.toml`. The servers in
        {option}`services.metamcp.servers` are added to `servers`; each of their
        keys is a default that `settings` overrides.
      '';
    };

    credentials = mkOption {
      type = types.attrsOf types.path;
      default = { };
      example = {
        gitea-token = "/run/secrets/gitea-token";
      };
      description = ''
        The files with secrets, by name. In
        {option}`services.metamcp.settings`, `credential:NAME` refers to the file
        of that name. systemd reads each file as root and passes it only to the
        service (`LoadCredential=`). A credential that only the `env` of a server
        unit refers to goes only to that unit.
      '';
    };

    extraPackages = mkOption {
      type = types.listOf types.package;
      default = [ ];
      example = lib.literalExpression "[ pkgs.git pkgs.nodejs pkgs.uv ]";
      description = ''
        Packages whose programs are in the {env}`PATH` of the service and of its
        children. The children are the servers with `isolation = "spawn"` and the
        servers in {option}`services.metamcp.settings`.
      '';
    };

    user = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "alice";
      description = ''
        The user that the service runs as. This user must exist. If `null`,
        systemd allocates a user (`DynamicUser=`).
      '';
    };

    group = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "users";
      description = "The group that the service runs as. This group must exist. If `null`, the primary group of the user.";
    };

    openFirewall = mkOption {
      type = types.bool;
      default = false;
      example = true;
      description = ''
        Whether to open the port of {option}`services.metamcp.settings.listen.http`
        in the firewall.
      '';
    };
  };

  config = lib.mkIf cfg.enable {
    inherit (checked) assertions warnings;

    environment.etc."metamcp/metamcp.toml".source = configFile;
    environment.systemPackages = [ cfg.package ];

    networking.firewall.allowedTCPPorts = lib.mkIf cfg.openFirewall [
      (lib.toInt ((import ./local-address.nix { inherit lib; }).listenAddress settings.listen.http).port)
    ];

    users.groups.metamcp = { };
    # Exists even without a server unit, so that the first one does not restart metamcp.
    users.groups.metamcp-servers = { };

    services.metamcp.settings.servers =
      lib.mapAttrs serverOptions.toSettings others
      // lib.mapAttrs (_: { settings, ... }: settings) serverUnits;
    services.metamcp.credentials = lib.mkMerge (
      lib.mapAttrsToList serverOptions.serviceCredentials others
    );

    # The package contains the units. NixOS ignores their [Install] sections.
    systemd.packages = [ cfg.package ];

    systemd.sockets = {
      metamcp = {
        wantedBy = [ "sockets.target" ];
        partOf = [ "metamcp-addresses.service" ];
        # The empty entry removes the address of the package's unit.
        listenStreams = [
          ""
          settings.listen.http
        ];
      };
      metamcp-control = {
        wantedBy = [ "sockets.target" ];
        partOf = [ "metamcp-addresses.service" ];
        listenStreams = [
          ""
          (escapeSpecifiers settings.listen.control)
        ];
        socketConfig.SocketGroup = controlGroup;
      };
      metamcp-metrics = lib.mkIf hasMetrics {
        description = "Metrics of metamcp";
        wantedBy = [ "sockets.target" ];
        partOf = [ "metamcp-addresses.service" ];
        listenStreams = [ settings.listen.metrics ];
        socketConfig = {
          FileDescriptorName = "metrics";
          Service = "metamcp.service";
        };
      };
    }
    // lib.mapAttrs' (
      name: { socket, ... }: lib.nameValuePair (serverUnit.unitName name) socket
    ) serverUnits;

    systemd.services = {
      metamcp = {
        wantedBy = lib.mkIf startsAtBoot [ "multi-user.target" ];
        path = cfg.extraPackages ++ lib.concatMap (server: server.extraPackages) (lib.attrValues others);
        reloadTriggers = [ configFile ];
        # The switch restarts the service once, with the new unit. Meanwhile the
        # sockets queue new connections. The default is a stop at the beginning of
        # the switch and a start at its end.
        stopIfChanged = false;
        serviceConfig =
          lib.mapAttrs (_: lib.mkDefault) (serviceDirectives {
            inherit (cfg) group settings user;
          })
          // {
            LoadCredential = lib.mapAttrsToList (name: file: "${name}:${escapeSpecifiers (toString file)}") (
              removeAttrs cfg.credentials credentialsOfUnits
            );
            SupplementaryGroups = [ "metamcp-servers" ];
          }
          # The service starts this socket first, also where it runs already without it.
          // lib.optionalAttrs hasMetrics { Sockets = [ "metamcp-metrics.socket" ]; };
      };

      # A switch does not restart a changed socket unit, for example one with
      # another group. systemd closes a socket whose address has changed when it
      # reads the unit again. A restart of this unit restarts the sockets (PartOf=),
      # and with them the service.
      metamcp-addresses = {
        description = "Addresses of metamcp";
        wantedBy = [ "multi-user.target" ];
        restartTriggers = [
          settings.listen.http
          settings.listen.control
          controlGroup
        ]
        ++ lib.optional hasMetrics settings.listen.metrics;
        stopIfChanged = false;
        serviceConfig = {
          Type = "oneshot";
          RemainAfterExit = true;
          ExecStart = lib.getExe' pkgs.coreutils "true";
        };
      };

      # systemd reads explanations for `journalctl -x` from its own package and from
      # /usr/local, and NixOS links none of other packages. A switch does not fail for them.
      metamcp-catalog = {
        description = "Explanations of the messages of metamcp";
        wantedBy = [ "multi-user.target" ];
        after = [ "systemd-journal-catalog-update.service" ];
        serviceConfig = {
          Type = "oneshot";
          RemainAfterExit = true;
          ExecStart = [
            "${lib.getExe' pkgs.coreutils "mkdir"} -p /usr/local/lib/systemd/catalog"
            "${lib.getExe' pkgs.coreutils "ln"} -sfT ${cfg.package}/lib/systemd/catalog/metamcp.catalog ${catalog}"
            "-${lib.getExe' config.systemd.package "journalctl"} --update-catalog"
          ];
          ExecStop = [
            "${lib.getExe' pkgs.coreutils "rm"} -f ${catalog}"
            "-${lib.getExe' config.systemd.package "journalctl"} --update-catalog"
          ];
        };
      };
    }
    // lib.mapAttrs' (
      name: { service, ... }: lib.nameValuePair "${serverUnit.unitName name}@" service
    ) serverUnits;
  };

  meta.maintainers = [ ];
}
