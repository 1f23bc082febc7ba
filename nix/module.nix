{
  config,
  lib,
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

  # The servers that are units of their own, and all others.
  isUnit = server: server.command != null && server.isolation == "unit";
  isolated = lib.filterAttrs (_: isUnit) cfg.servers;
  others = lib.filterAttrs (_: server: !isUnit server) cfg.servers;
  instances = lib.mapAttrs (instance.units cfg.credentials) isolated;
  unitName = name: "metamcp-server-${name}";

  isLoopback = builtins.match "(127\\.[0-9.]+|\\[::1]):[0-9]+" settings.listen.http != null;

  # Every server, with the option that declares it.
  servers =
    lib.mapAttrsToList (name: server: {
      inherit name server;
      option = "services.metamcp.${
        lib.optionalString (!cfg.servers ? ${name}) "settings."
      }servers.${name}";
    }) settings.servers
    ++ lib.mapAttrsToList (name: server: {
      inherit name server;
      option = "services.metamcp.settings.provision.servers.${name}";
    }) settings.provision.servers;
  startsAtBoot = lib.any (found: found.server.start != "lazy") servers;

  # Every value that may be a reference, with the option it stands in.
  values = tlsValues ++ sessionValues ++ embeddingValues ++ serverValues;
  tlsValues = lib.optionals (settings.listen.tls != null) (
    lib.mapAttrsToList (key: value: {
      inherit key value;
      option = "services.metamcp.settings.listen.tls.${key}";
    }) settings.listen.tls
  );
  sessionValues = lib.optional (settings.listen.session_key != null) {
    key = "session_key";
    value = settings.listen.session_key;
    option = "services.metamcp.settings.listen.session_key";
  };
  embeddingValues =
    let
      inherit (settings.search) embedding;
    in
    lib.optional (embedding != null && embedding.api_key != null) {
      key = "api_key";
      value = embedding.api_key;
      option = "services.metamcp.settings.search.embedding.api_key";
    };
  serverValues = lib.concatMap (
    { option, server, ... }:
    lib.concatMap
      (
        table:
        lib.mapAttrsToList (key: value: {
          inherit key value;
          option = "${option}.${table}.${key}";
        }) server.${table}
      )
      [
        "env"
        "headers"
      ]
  ) (servers ++ isolatedServers);
  isolatedServers = lib.mapAttrsToList (name: server: {
    inherit name server;
    option = "services.metamcp.servers.${name}";
  }) isolated;
  isCredential = lib.hasPrefix "credential:";
  looksSecret =
    { key, value, ... }:
    builtins.match ".*(AUTHORIZATION|KEY|PASSWORD|SECRET|TOKEN).*" (lib.toUpper key) != null
    && !isCredential value
    && !lib.hasPrefix "env:" value;

  # What cannot work in a unit of its own, and what firewalls are no use for.
  unitAssertions = [
    {
      assertion = cfg.openFirewall -> !isLoopback;
      message = "services.metamcp.openFirewall opens a port on which nobody listens but for this host: set services.metamcp.settings.listen.http to an address that the network reaches, or leave it out.";
    }
  ]
  ++ lib.concatLists (
    lib.mapAttrsToList (
      name: server:
      lib.mapAttrsToList (key: value: {
        assertion = !lib.hasPrefix "env:" value;
        message = "services.metamcp.servers.${name}.env.${key} is a variable of the service, whose environment a unit of its own does not have: write what it holds, or put a secret into a file and name that in services.metamcp.servers.${name}.credentials.${key}, or set services.metamcp.servers.${name}.isolation to \"spawn\".";
      }) server.env
      ++ map (key: {
        assertion = builtins.match "[A-Za-z_][A-Za-z0-9_]*" key != null;
        message = "services.metamcp.servers.${name} is to get an environment variable ${key}, which is no name of one: use letters, digits and _, and no digit first.";
      }) (lib.attrNames (server.env // server.credentials))
    ) isolated
  )
  ++ lib.concatLists (
    lib.mapAttrsToList (
      name: server:
      lib.mapAttrsToList (key: file: {
        assertion = !builtins.isPath file && !lib.hasPrefix builtins.storeDir (toString file);
        message = "services.metamcp.servers.${name}.credentials.${key} would put the secret into the Nix store, where every user can read it: give the path as a string (\"/run/secrets/${key}\") to a file outside of the store.";
      }) server.credentials
      ++ lib.mapAttrsToList (key: _: {
        assertion = !(server.env ? ${key}) && !(server.headers ? ${key});
        message = "services.metamcp.servers.${name}.credentials.${key} is also set as a value of its own: leave one of them out.";
      }) server.credentials
    ) cfg.servers
  );
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
            sandbox.preset = "strict";
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
        (`LoadCredential=`).
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
      description = ''
        Whether to open the port in {option}`services.metamcp.settings.listen.http`
        in the firewall.
      '';
    };
  };

  config = lib.mkIf cfg.enable {
    assertions = [
      {
        assertion = isLoopback;
        message = "services.metamcp.settings.listen.http is ${settings.listen.http}, which is not a loopback address: metamcp asks nobody for a password, so listen on 127.0.0.1 and put a proxy with TLS and authentication in front.";
      }
      {
        assertion =
          lib.elem settings.listen.root [
            "direct"
            "meta"
          ]
          || settings.servers ? ${lib.removePrefix "passthrough:" settings.listen.root};
        message = "services.metamcp.settings.listen.root is ${settings.listen.root}, but there is no such server: declare it in services.metamcp.settings.servers, or use \"direct\".";
      }
    ]
    ++ map (
      { name, option, ... }:
      {
        assertion =
          builtins.match "[A-Za-z0-9]([A-Za-z0-9_-]{0,38}[A-Za-z0-9])?" name != null
          && !lib.hasInfix "__" name;
        message = "${option} is not a valid name: use 1 to 40 letters, digits, - and _, a letter or digit first and last, and no __.";
      }
    ) servers
    ++ map (
      { option, server, ... }:
      {
        assertion =
          let
            ways = [
              server.command
              server.url
              server.socket
            ];
          in
          builtins.length (builtins.filter (way: way != null) ways) == 1;
        message = "${option} needs one of command, url and socket: set `command` for a program to run, `url` for an endpoint or `socket` for a unit to connect to.";
      }
    ) servers
    ++ map (name: {
      assertion = !(settings.servers ? ${name});
      message = "services.metamcp.settings.provision.servers.${name} is declared in services.metamcp.settings.servers too, and so is there anyway: remove or rename one.";
    }) (lib.attrNames settings.provision.servers)
    ++ map (
      { option, value, ... }:
      let
        name = lib.removePrefix "credential:" value;
      in
      {
        assertion = isCredential value -> cfg.credentials ? ${name};
        message = "${option} refers to the credential ${name}, which does not exist: set services.metamcp.credentials.${name} to the path of a file that holds the secret.";
      }
    ) values
    ++ lib.optional (settings.listen.tls != null) {
      assertion = !lib.hasPrefix builtins.storeDir settings.listen.tls.key;
      message = "services.metamcp.settings.listen.tls.key is in the Nix store, where every user can read it: give the path of a file outside of the store, or name it in services.metamcp.credentials and refer to it with \"credential:NAME\".";
    }
    ++ lib.mapAttrsToList (name: file: {
      assertion = !builtins.isPath file && !lib.hasPrefix builtins.storeDir (toString file);
      message = "services.metamcp.credentials.${name} would put the secret into the Nix store, where every user can read it: give the path as a string (\"/run/secrets/${name}\") to a file outside of the store.";
    }) cfg.credentials
    ++ unitAssertions;

    warnings = map (
      { option, ... }:
      "${option} looks like a secret, and every user can read it in the Nix store: put it into a file, name that in services.metamcp.credentials, and refer to it with \"credential:NAME\"."
    ) (lib.filter looksSecret serverValues);

    environment.etc."metamcp/metamcp.toml".source = configFile;
    environment.systemPackages = [ cfg.package ];

    networking.firewall.allowedTCPPorts = lib.mkIf cfg.openFirewall [
      (lib.toInt (lib.last (lib.splitString ":" settings.listen.http)))
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
        # The empty entry takes back the address in the package's unit.
        listenStreams = [
          ""
          settings.listen.http
        ];
      };
      metamcp-control = {
        wantedBy = [ "sockets.target" ];
        listenStreams = [
          ""
          settings.listen.control
        ];
        socketConfig.SocketGroup = "metamcp";
      };
    }
    // lib.mapAttrs' (name: { socket, ... }: lib.nameValuePair (unitName name) socket) instances;

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
            LoadCredential = lib.mapAttrsToList (name: file: "${name}:${toString file}") cfg.credentials;
            SupplementaryGroups = [ "metamcp-servers" ];
          };
      };
    }
    // lib.mapAttrs' (name: { service, ... }: lib.nameValuePair "${unitName name}@" service) instances;
  };

  meta.maintainers = [ ];
}
