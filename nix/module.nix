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
  format = pkgs.formats.toml { };

  # TOML has no null.  Lists and tables that say nothing stay out as well, so
  # that a `url` server has no `args`.
  withoutEmpty =
    table:
    lib.filterAttrs (
      _: value:
      !lib.elem value [
        null
        [ ]
        { }
      ]
    ) (lib.mapAttrs (_: value: if isTable value then withoutEmpty value else value) table);
  isTable = value: builtins.isAttrs value && !(value ? outPath);
  document = withoutEmpty settings;

  # The program itself checks the file while the system is built: a mistake
  # fails the build and not the service.  A foreign program cannot be run, and
  # the files of a certificate are not there yet.
  unchecked = format.generate "metamcp.toml" document;
  configFile =
    if pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform then
      pkgs.runCommand "metamcp.toml" { } ''
        cp ${unchecked} $out
        ${lib.getExe cfg.package} check --no-files $out
      ''
    else
      unchecked;

  isLoopback = builtins.match "(127\\.[0-9.]+|\\[::1]):[0-9]+" settings.listen.http != null;

  # Every server, with the option that declares it.
  servers =
    let
      under =
        option:
        lib.mapAttrsToList (
          name: server: {
            inherit name server;
            option = "services.metamcp.settings.${option}.${name}";
          }
        );
    in
    under "servers" settings.servers ++ under "provision.servers" settings.provision.servers;
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
  ) servers;
  isCredential = lib.hasPrefix "credential:";
  looksSecret =
    { key, value, ... }:
    builtins.match ".*(AUTHORIZATION|KEY|PASSWORD|SECRET|TOKEN).*" (lib.toUpper key) != null
    && !isCredential value
    && !lib.hasPrefix "env:" value;
in
{
  options.services.metamcp = {
    enable = lib.mkEnableOption "metamcp, which runs each MCP server once and serves it to every client";

    package = lib.mkPackageOption pkgs "metamcp" { };

    settings = mkOption {
      type = types.submodule (import ./settings.nix { inherit format lib; });
      default = { };
      description = "Contents of {file}`/etc/metamcp/metamcp.toml`.";
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
      description = "Packages whose programs the servers find in their {env}`PATH`.";
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
    }) cfg.credentials;

    warnings = map (
      { option, ... }:
      "${option} looks like a secret, and every user can read it in the Nix store: put it into a file, name that in services.metamcp.credentials, and refer to it with \"credential:NAME\"."
    ) (lib.filter looksSecret serverValues);

    environment.etc."metamcp/metamcp.toml".source = configFile;
    environment.systemPackages = [ cfg.package ];

    users.groups.metamcp = { };

    # The units themselves come with the package; NixOS ignores their [Install].
    systemd.packages = [ cfg.package ];

    systemd.sockets.metamcp = {
      wantedBy = [ "sockets.target" ];
      # The empty entry takes back the address in the package's unit.
      listenStreams = [
        ""
        settings.listen.http
      ];
    };

    systemd.sockets.metamcp-control = {
      wantedBy = [ "sockets.target" ];
      listenStreams = [
        ""
        settings.listen.control
      ];
      socketConfig.SocketGroup = "metamcp";
    };

    systemd.services.metamcp = {
      wantedBy = lib.mkIf startsAtBoot [ "multi-user.target" ];
      path = cfg.extraPackages;
      reloadTriggers = [ configFile ];
      # One restart under the new unit, while the sockets hold the clients,
      # instead of a stop now and a start at the end of the switch.
      stopIfChanged = false;
      serviceConfig.LoadCredential = lib.mapAttrsToList (
        name: file: "${name}:${toString file}"
      ) cfg.credentials;
    };
  };

  meta.maintainers = [ ];
}
