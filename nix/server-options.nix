# The options of services.metamcp.servers.NAME, and their conversion to a table of
# metamcp.toml. The modules for NixOS and for Home Manager share them.
{
  format,
  lib,
  forUser ? false,
}:
let
  inherit (lib) mkOption types;
  inherit (import ./types.nix { inherit lib; }) absolutePath;
  inherit (import ./schema-options.nix { inherit format lib; }) optionsOf schema;
  keys = optionsOf schema.properties.servers.additionalProperties (
    import ./server-details.nix {
      inherit forUser lib;
      health = schema.properties.health.properties;
    }
  );

  # The keys whose description differs for a server that may run in a unit.
  unitKeys = lib.optionalAttrs (!forUser) {
    command = keys.command // {
      description = ''
        The program, which speaks MCP over stdin and stdout: an absolute path,
        or a name that is looked up in `extraPackages`. Set only one of
        `command`, `url` and `socket`.
      '';
    };
    env = keys.env // {
      description = ''
        The environment variables of `command`. A value is a literal text, or
        `credential:NAME` for an entry of {option}`services.metamcp.credentials`.
        With `isolation = "spawn"` it may also be `env:NAME`, for a variable of
        the service. Every user can read literal values in the Nix store.
      '';
    };
    cwd = keys.cwd // {
      type = types.nullOr absolutePath;
      description = ''
        The working directory of `command`. If `null`, the state directory of
        its sandbox, or {file}`/` if the sandbox has none. With
        `isolation = "spawn"`, `null` is {file}`/var/lib/metamcp`.
      '';
    };
  };

  asDefault = lib.mapAttrs (_: lib.mkDefault);
in
{
  # There is no freeformType, so that a mistyped key fails the evaluation.
  module =
    { config, ... }:
    {
      options =
        keys
        // unitKeys
        // {
          package = mkOption {
            type = types.nullOr types.package;
            default = null;
            example = lib.literalExpression "pkgs.mcp-server-git";
            description = "The package of the server. Its main program is the default of `command`.";
          };

          extraPackages = mkOption {
            type = types.listOf types.package;
            default = [ ];
            example = lib.literalExpression "[ pkgs.git ]";
            description = "Packages whose programs are in the {env}`PATH` of `command`.";
          };

          credentials = mkOption {
            type = types.attrsOf types.path;
            default = { };
            example = {
              GITEA_ACCESS_TOKEN = "/run/secrets/gitea-token";
            };
            description = ''
              Files with secrets, by the name of the environment variable of
              `command` or of the header of `url`. The variable or header gets the
              contents of the file without its final newline. systemd reads the
              files${if forUser then "" else " as root"} when the ${
                if forUser then "service" else "unit"
              } starts (`LoadCredential=`)${
                if forUser then
                  ""
                else
                  ", and passes them to no other unit. A server without its own unit gets its secrets through the service. Spawned servers run as the user of the service, and can read all credentials of the service"
              }.
            '';
          };
        };

      config.command = lib.mkIf (config.package != null) (lib.mkDefault (lib.getExe config.package));
    };

  # The credentials of the service that belong to a server without a unit.
  serviceCredentials =
    name: server: lib.mapAttrs' (key: file: lib.nameValuePair "${name}.${key}" file) server.credentials;

  # The table of a server in metamcp.toml. Each key is a default, so that
  # services.metamcp.settings.servers overrides it.
  toSettings =
    name: server:
    let
      references = lib.mapAttrs (key: _: "credential:${name}.${key}") server.credentials;
      secrets = key: lib.optionalAttrs (server.${key} != null) references;
    in
    asDefault (
      removeAttrs (builtins.intersectAttrs keys server) [
        "env"
        "headers"
        "health"
        "tls"
      ]
    )
    // {
      env = asDefault (server.env // secrets "command");
      headers = asDefault (server.headers // secrets "url");
      health = asDefault server.health;
      tls = asDefault server.tls;
    };
}
