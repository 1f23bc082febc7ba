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

  document = import ./document.nix { inherit lib pkgs; };
  inherit (document) format;
  configFile = document.file cfg.package settings;
  declared = import ./declared.nix { inherit format lib; };
  sandbox = import ./sandbox.nix { inherit lib; };
  instance = import ./instance.nix { inherit declared lib sandbox; };
  gateway = import ./gateway.nix { inherit lib; };
  escapeSpecifiers = import ./escape-specifiers.nix { inherit lib; };
  examined = import ./assertions.nix { inherit lib; } {
    inherit cfg;
    inherit (config.users) groups users;
    inherit (config.systemd) services;
    serviceDefinitions = options.systemd.services.definitionsWithLocations;
  };

  # The servers that are units of their own, and all others.
  inherit (import ./inventory.nix { inherit lib; } cfg) isUnit;
  isolated = lib.filterAttrs (_: isUnit) cfg.servers;
  others = lib.filterAttrs (_: server: !isUnit server) cfg.servers;
  instances = lib.mapAttrs (instance.units {
    inherit (cfg) credentials;
    effective = settings.servers;
  }) isolated;
  # Those that are units alone refer to: none of the service's.
  credentialsOfUnits =
    let
      ours = document.references settings;
    in
    lib.filter (name: !lib.elem name ours) (
      document.references (lib.mapAttrsToList (_: server: server.env) isolated)
    );

  controlGroup =
    if settings.listen.control_group != null then settings.listen.control_group else "metamcp";

  startsAtBoot = lib.any (server: server.start != "lazy") (lib.attrValues settings.servers);
in
{
  imports = [
    ./claude-code.nix
    ./upstream.nix
  ];

  options.services.metamcp = {
    enable = lib.mkEnableOption "metamcp, which runs each MCP server once and serves it to every client";

    package = lib.mkPackageOption pkgs "metamcp" { };

    servers = mkOption {
      type = types.attrsOf (
        types.submodule [
          declared.module
          instance.module
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
        MCP servers by name. A name has 1 to 40 letters, digits, `-` and `_`,
        starts and ends with a letter or digit, and has no `__`.

        Every one with a `command` runs in a unit of its own, the template
        {file}`metamcp-server-NAME@.service`, which systemd starts when metamcp
        connects to {file}`metamcp-server-NAME.socket`.
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
        Contents of {file}`/etc/metamcp/metamcp.toml`. Servers that are declared
        in {option}`services.metamcp.servers` are among its `servers`, each key
        as a default.
      '';
    };

    credentials = mkOption {
      type = types.attrsOf types.path;
      default = { };
      example = {
        gitea-token = "/run/secrets/gitea-token";
      };
      description = ''
        Files with secrets, by the name under which
        {option}`services.metamcp.settings` refers to them (`credential:NAME`).
        systemd reads them as root and hands them to the service alone
        (`LoadCredential=`), or to the unit of the server that refers to one in
        its `env`.
      '';
    };

    extraPackages = mkOption {
      type = types.listOf types.package;
      default = [ ];
      example = lib.literalExpression "[ pkgs.git pkgs.nodejs pkgs.uv ]";
      description = ''
        Packages whose programs the service finds in its {env}`PATH`, and so do
        its children: the servers with `isolation = "spawn"` and those in
        {option}`services.metamcp.settings`.
      '';
    };

    user = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "alice";
      description = ''
        User that the service runs as, who must exist. If `null`, one that
        systemd makes (`DynamicUser=`).
      '';
    };

    group = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "users";
      description = "Group that the service runs as, which must exist; that of its user if `null`.";
    };

    openFirewall = mkOption {
      type = types.bool;
      default = false;
      example = true;
      description = ''
        Whether to open the port in {option}`services.metamcp.settings.listen.http`
        in the firewall.
      '';
    };
  };

  config = lib.mkIf cfg.enable {
    inherit (examined) assertions warnings;

    environment.etc."metamcp/metamcp.toml".source = configFile;
    environment.systemPackages = [ cfg.package ];

    networking.firewall.allowedTCPPorts = lib.mkIf cfg.openFirewall [
      (lib.toInt ((import ./address.nix { inherit lib; }).own settings.listen.http).port)
    ];

    users.groups.metamcp = { };
    # There before the first server needs it, which then need not restart metamcp.
    users.groups.metamcp-servers = { };

    services.metamcp.settings.servers =
      lib.mapAttrs declared.toSettings others // lib.mapAttrs (_: { settings, ... }: settings) instances;
    services.metamcp.credentials = lib.mkMerge (lib.mapAttrsToList declared.serviceCredentials others);

    # The units themselves come with the package; NixOS ignores their [Install].
    systemd.packages = [ cfg.package ];

    systemd.sockets = {
      metamcp = {
        wantedBy = [ "sockets.target" ];
        partOf = [ "metamcp-addresses.service" ];
        # The empty entry takes back the address in the package's unit.
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
    }
    // lib.mapAttrs' (
      name: { socket, ... }: lib.nameValuePair (instance.unitName name) socket
    ) instances;

    systemd.services = {
      metamcp = {
        wantedBy = lib.mkIf startsAtBoot [ "multi-user.target" ];
        path = cfg.extraPackages ++ lib.concatMap (server: server.extraPackages) (lib.attrValues others);
        reloadTriggers = [ configFile ];
        # One restart under the new unit, while the sockets hold the clients,
        # instead of a stop now and a start at the end of the switch.
        stopIfChanged = false;
        serviceConfig =
          lib.mapAttrs (_: lib.mkDefault) (gateway {
            inherit (cfg) group settings user;
          })
          // {
            LoadCredential = lib.mapAttrsToList (name: file: "${name}:${escapeSpecifiers (toString file)}") (
              removeAttrs cfg.credentials credentialsOfUnits
            );
            SupplementaryGroups = [ "metamcp-servers" ];
          };
      };

      # A switch restarts no socket for a change of its own, as of its group, and
      # systemd closes one whose address has changed when it reads the unit again.
      # This one's restart is that of the sockets, and so of the service.
      metamcp-addresses = {
        description = "Addresses of metamcp";
        wantedBy = [ "multi-user.target" ];
        restartTriggers = [
          settings.listen.http
          settings.listen.control
          controlGroup
        ];
        stopIfChanged = false;
        serviceConfig = {
          Type = "oneshot";
          RemainAfterExit = true;
          ExecStart = lib.getExe' pkgs.coreutils "true";
        };
      };
    }
    // lib.mapAttrs' (
      name: { service, ... }: lib.nameValuePair "${instance.unitName name}@" service
    ) instances;
  };

  meta.maintainers = [ ];
}
