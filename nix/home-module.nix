# The Home Manager module: one metamcp for a user.
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
  serverOptions = import ./server-options.nix {
    inherit format lib;
    forUser = true;
  };
  checked = import ./assertions.nix { inherit lib; } { inherit cfg; };
  parseUnitFile = import ./unit-file-parser.nix { inherit lib; };
  escapeSpecifiers = import ./escape-specifiers.nix { inherit lib; };

  configFile = tomlFile.file cfg.package settings;
  configPath = "${config.xdg.configHome}/metamcp/metamcp.toml";

  startsAtLogin = lib.any (server: server.start != "lazy") (lib.attrValues settings.servers);

  # The profile of the user is in PATH too, as in a shell. The PATH of the user manager
  # follows, which another distribution may set.
  packages =
    cfg.extraPackages ++ lib.concatMap (server: server.extraPackages) (lib.attrValues cfg.servers);
  serve = pkgs.writeShellScript "metamcp-serve" ''
    export PATH="${
      lib.concatMapStrings (package: "${lib.getBin package}/bin:") packages
    }${config.home.profileDirectory}/bin''${PATH:+:$PATH}"
    exec ${lib.getExe cfg.package} "$@"
  '';

  # The units of the package as options, so that sd-switch sees what has changed, and
  # users can change them in systemd.user.services.metamcp. Home Manager creates the
  # links for WantedBy= itself, and does not need Also=.
  packaged =
    name:
    lib.mapAttrs (_: lib.mapAttrs (_: lib.mkDefault)) (
      removeAttrs (parseUnitFile (../systemd/user + "/${name}")) [ "Install" ]
    );

  integration = import ./mcp-integration.nix { inherit lib; } {
    home = config.home.homeDirectory;
    inherit ((import ./local-address.nix { inherit lib; }).listenAddress settings.listen.http) isOwnUrl;
    final = cfg.servers;
    declared = lib.optionalAttrs integrates (
      removeAttrs config.programs.mcp.servers cfg.mcpIntegration.exclude
    );
  };
  integrates = hasMcp && config.programs.mcp.enable && cfg.mcpIntegration.enable;

  # Older releases of Home Manager do not have these modules.
  hasMcp = options ? programs && options.programs ? mcp;
  hasClaudeCode = options ? programs && options.programs ? claude-code;
  usesClaudeCode = hasClaudeCode && config.programs.claude-code.enable;
  claude = import ./claude-code-entry.nix { inherit lib; };
  entry = claude.entry settings.listen cfg.claudeCode.url;
in
{
  options.services.metamcp = {
    enable = lib.mkEnableOption "metamcp, which runs each MCP server once and serves it to every client of this user";

    package = lib.mkPackageOption pkgs "metamcp" { };

    servers = mkOption {
      type = types.attrsOf (types.submodule serverOptions.module);
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
        The MCP servers, by name. A name has 1 to 40 letters, digits, `-` and
        single `_`, with a letter or digit at both ends.

        A server with a `command` is a child of the service. It has the
        permissions of the user and the sandbox of {file}`metamcp.service`. A
        user manager has no other user for it, and only a weak sandbox.
        Therefore the options `isolation` and `sandbox` do not exist here.
        Declare a server that must not access the files of the user in the NixOS
        module instead.

        You can set further keys in
        {option}`services.metamcp.settings.servers`, which takes precedence.
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
      description = "The contents of {file}`$XDG_CONFIG_HOME/metamcp/metamcp.toml`.";
    };

    credentials = mkOption {
      type = types.attrsOf types.path;
      default = { };
      example = {
        gitea-token = "/run/user/1000/secrets/gitea-token";
      };
      description = ''
        The files with secrets, by name. In
        {option}`services.metamcp.settings`, `credential:NAME` refers to the file
        of that name. systemd passes the files to the service
        (`LoadCredential=`).
      '';
    };

    extraPackages = mkOption {
      type = types.listOf types.package;
      default = [ ];
      example = lib.literalExpression "[ pkgs.git pkgs.nodejs pkgs.uv ]";
      description = ''
        Packages whose programs are in the {env}`PATH` of the servers, before
        the profile of the user.
      '';
    };

    mcpIntegration = {
      enable = mkOption {
        type = types.bool;
        default = true;
        example = false;
        description = ''
          Whether metamcp also serves the servers in
          {option}`programs.mcp.servers`, if {option}`programs.mcp.enable` is
          set. Each server that is not disabled becomes a default of
          {option}`services.metamcp.servers`. Files in `env` become credentials,
          and `{env:NAME}` becomes a variable of the service. An entry for
          metamcp itself is left out, so that you can declare metamcp there for
          other clients.
        '';
      };

      exclude = mkOption {
        type = types.listOf types.str;
        default = [ ];
        example = [ "context7" ];
        description = "The names of servers in {option}`programs.mcp.servers` that metamcp does not serve.";
      };
    };

    claudeCode = {
      enable = mkOption {
        type = types.bool;
        default = false;
        example = true;
        description = ''
          Whether to declare metamcp to Claude Code. If
          {option}`programs.claude-code.enable` is set, metamcp becomes a server
          in {option}`programs.claude-code.mcpServers`. Otherwise it is in
          {file}`$XDG_CONFIG_HOME/metamcp/mcp.json`. Pass this file to
          {command}`claude --mcp-config`, or copy it into a project as
          {file}`.mcp.json`.
        '';
      };

      url = claude.urlOption settings.listen;
    };
  };

  config = lib.mkIf cfg.enable (
    lib.mkMerge [
      {
        inherit (checked) assertions;
        warnings =
          checked.warnings
          ++ integration.warnings
          ++
            lib.optional
              (
                integrates
                && usesClaudeCode
                && cfg.claudeCode.enable
                && config.programs.claude-code.enableMcpIntegration or false
              )
              "programs.claude-code.enableMcpIntegration makes Claude Code start the servers in programs.mcp.servers itself, in addition to metamcp: set it to false.";

        services.metamcp.servers = integration.servers;
        services.metamcp.settings.servers = lib.mapAttrs serverOptions.toSettings cfg.servers;
        services.metamcp.credentials = lib.mkMerge (
          lib.mapAttrsToList serverOptions.serviceCredentials cfg.servers
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
              # sd-switch restarts a changed socket, which stops the service. A
              # stopped service cannot reload, so that it must restart.
              X-Restart-Triggers = [
                settings.listen.http
              ]
              ++ lib.filter (address: address != null) [
                settings.listen.control
                settings.listen.metrics
              ];
              # sd-switch restarts the service once, with the new unit. Meanwhile the
              # sockets queue new connections.
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
