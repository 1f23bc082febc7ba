# metamcp as a service of a user, for Home Manager.
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
  declared = import ./declared.nix {
    inherit format lib;
    forUser = true;
  };
  examined = import ./assertions.nix { inherit lib; } { inherit cfg; };
  unitFile = import ./unit-file.nix { inherit lib; };
  escapeSpecifiers = import ./escape-specifiers.nix { inherit lib; };

  configFile = document.file cfg.package settings;
  configPath = "${config.xdg.configHome}/metamcp/metamcp.toml";

  startsAtLogin = lib.any (server: server.start != "lazy") (lib.attrValues settings.servers);

  # The user's own programs are found too, as in a shell; what a manager of
  # another distribution has in its PATH stays behind them.
  packages =
    cfg.extraPackages ++ lib.concatMap (server: server.extraPackages) (lib.attrValues cfg.servers);
  serve = pkgs.writeShellScript "metamcp-serve" ''
    export PATH="${
      lib.concatMapStrings (package: "${lib.getBin package}/bin:") packages
    }${config.home.profileDirectory}/bin''${PATH:+:$PATH}"
    exec ${lib.getExe cfg.package} "$@"
  '';

  # The units that the package brings, for sd-switch to see what has changed and
  # for users to change them by systemd.user.services.metamcp.  Home Manager
  # makes links of WantedBy= and needs no Also=.
  packaged =
    name:
    lib.mapAttrs (_: lib.mapAttrs (_: lib.mkDefault)) (
      removeAttrs (unitFile (../systemd/user + "/${name}")) [ "Install" ]
    );

  integration = import ./mcp-integration.nix { inherit lib; } {
    home = config.home.homeDirectory;
    isOwnUrl = ((import ./address.nix { inherit lib; }).own settings.listen.http).isOurs;
    final = cfg.servers;
    declared = lib.optionalAttrs integrates (
      removeAttrs config.programs.mcp.servers cfg.mcpIntegration.exclude
    );
  };
  integrates = hasMcp && config.programs.mcp.enable && cfg.mcpIntegration.enable;

  # Older releases of Home Manager do not have them.
  hasMcp = options ? programs && options.programs ? mcp;
  hasClaudeCode = options ? programs && options.programs ? claude-code;
  usesClaudeCode = hasClaudeCode && config.programs.claude-code.enable;
  claude = import ./claude-entry.nix { inherit lib; };
  entry = claude.entry settings.listen cfg.claudeCode.url;
in
{
  options.services.metamcp = {
    enable = lib.mkEnableOption "metamcp, which runs each MCP server once and serves it to every client of this user";

    package = lib.mkPackageOption pkgs "metamcp" { };

    servers = mkOption {
      type = types.attrsOf (types.submodule declared.module);
      default = { };
      example = lib.literalExpression ''
        {
          time.package = pkgs.mcp-server-time;
          gitea = {
            package = pkgs.gitea-mcp-server;
            args = [ "-t" "stdio" ];
            credentials.GITEA_ACCESS_TOKEN = "/run/user/1000/secrets/gitea";
          };
        }
      '';
      description = ''
        MCP servers by name. A name has 1 to 40 letters, digits, `-` and `_`,
        starts and ends with a letter or digit, and has no `__`.

        A server with a `command` is a child of the service, with the rights of
        the user and in the sandbox of {file}`metamcp.service`. The manager of a
        user has no other users and hardly any sandbox to give, so that there is
        no `isolation` and no `sandbox` here: a server that should not get at
        the files of the user belongs into the module for NixOS.

        What else a table of {option}`services.metamcp.settings.servers` may say
        can be said there; it takes precedence.
      '';
    };

    settings = mkOption {
      type = types.submodule (
        import ./settings.nix {
          inherit format lib;
          forUser = true;
        }
      );
      default = { };
      description = "Contents of {file}`$XDG_CONFIG_HOME/metamcp/metamcp.toml`.";
    };

    credentials = mkOption {
      type = types.attrsOf types.path;
      default = { };
      example = {
        gitea-token = "/run/user/1000/secrets/gitea-token";
      };
      description = ''
        Files with secrets, by the name under which
        {option}`services.metamcp.settings` refers to them (`credential:NAME`).
        systemd hands them to the service (`LoadCredential=`).
      '';
    };

    extraPackages = mkOption {
      type = types.listOf types.package;
      default = [ ];
      example = lib.literalExpression "[ pkgs.git pkgs.nodejs pkgs.uv ]";
      description = ''
        Packages whose programs the servers find in their {env}`PATH`, before
        those in the profile of the user.
      '';
    };

    mcpIntegration = {
      enable = mkOption {
        type = types.bool;
        default = true;
        example = false;
        description = ''
          Whether the servers in {option}`programs.mcp.servers` are servers of
          metamcp too, if {option}`programs.mcp.enable` is set: each one that is
          not disabled is a default of {option}`services.metamcp.servers`.
          Files in `env` become credentials, `{env:NAME}` a variable of the
          service. An entry that leads to metamcp itself is left out, so that
          other clients can be given it there.
        '';
      };

      exclude = mkOption {
        type = types.listOf types.str;
        default = [ ];
        example = [ "context7" ];
        description = "Names of servers in {option}`programs.mcp.servers` that are left to their clients.";
      };
    };

    claudeCode = {
      enable = mkOption {
        type = types.bool;
        default = false;
        example = true;
        description = ''
          Whether Claude Code is told of metamcp: as a server in
          {option}`programs.claude-code.mcpServers` if
          {option}`programs.claude-code.enable` is set, else in
          {file}`$XDG_CONFIG_HOME/metamcp/mcp.json`, for
          {command}`claude --mcp-config` or to be copied as {file}`.mcp.json`.
        '';
      };

      url = claude.urlOption settings.listen;
    };
  };

  config = lib.mkIf cfg.enable (
    lib.mkMerge [
      {
        inherit (examined) assertions;
        warnings =
          examined.warnings
          ++ integration.warnings
          ++
            lib.optional
              (
                integrates
                && usesClaudeCode
                && cfg.claudeCode.enable
                && config.programs.claude-code.enableMcpIntegration or false
              )
              "programs.claude-code.enableMcpIntegration makes Claude Code start the servers in programs.mcp.servers itself, besides those that metamcp runs: set it to false.";

        services.metamcp.servers = integration.servers;
        services.metamcp.settings.servers = lib.mapAttrs declared.toSettings cfg.servers;
        services.metamcp.credentials = lib.mkMerge (
          lib.mapAttrsToList declared.serviceCredentials cfg.servers
        );

        home.packages = [ cfg.package ];
        home.sessionVariables = lib.mkIf (settings.listen.control != null) {
          METAMCP_SOCKET = settings.listen.control;
        };

        xdg.configFile."metamcp/metamcp.toml".source = configFile;

        systemd.user.sockets = {
          metamcp = lib.mkMerge [
            (packaged "metamcp.socket")
            {
              Socket.ListenStream = settings.listen.http;
              Install.WantedBy = [ "sockets.target" ];
            }
          ];
          metamcp-control = lib.mkMerge [
            (packaged "metamcp-control.socket")
            {
              Socket = lib.mkIf (settings.listen.control != null) {
                ListenStream = escapeSpecifiers settings.listen.control;
              };
              Install.WantedBy = [ "sockets.target" ];
            }
          ];
        };

        systemd.user.services.metamcp = lib.mkMerge [
          (packaged "metamcp.service")
          {
            Unit = {
              X-Reload-Triggers = [ "${configFile}" ];
              # A changed socket is restarted, which stops the service: that
              # cannot be reloaded then.
              X-Restart-Triggers = [
                settings.listen.http
              ]
              ++ lib.optional (settings.listen.control != null) settings.listen.control;
              # One restart under the new unit, while the sockets hold the clients.
              X-SwitchMethod = "restart";
            };
            Service = {
              ExecStart = "${serve} serve --config ${escapeSpecifiers configPath}";
              LoadCredential = lib.mapAttrsToList (
                name: file: "${name}:${escapeSpecifiers (toString file)}"
              ) cfg.credentials;
            };
            Install.WantedBy = lib.optional startsAtLogin "default.target";
          }
        ];
      }

      (lib.mkIf (cfg.claudeCode.enable && !usesClaudeCode) {
        xdg.configFile."metamcp/mcp.json".text = builtins.toJSON { mcpServers.metamcp = entry; } + "\n";
      })

      (lib.optionalAttrs hasClaudeCode {
        programs.claude-code.mcpServers = lib.mkIf (cfg.claudeCode.enable && usesClaudeCode) {
          metamcp = lib.mkDefault entry;
        };
      })
    ]
  );

  meta.maintainers = [ ];
}
