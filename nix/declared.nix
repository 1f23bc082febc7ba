# A server as users declare it: one of services.metamcp.servers, and what it
# means in metamcp.toml.  The modules for NixOS and for Home Manager share it.
{
  format,
  lib,
  forUser ? false,
}:
let
  inherit (lib) mkOption types;
  inherit (import ./types.nix { inherit lib; }) absolutePath;
  keys = (import ./server.nix { inherit forUser format lib; }).options;

  # What is said of them where a server is a unit, unless it is spawned.
  ofUnits = lib.optionalAttrs (!forUser) {
    command = keys.command // {
      description = ''
        Program that speaks MCP over stdin and stdout: an absolute path, or a
        name to be found through `extraPackages`. Excludes `url` and `socket`.
      '';
    };
    env = keys.env // {
      description = ''
        Environment variables of `command`: a literal value, or
        `credential:NAME` for an entry of
        {option}`services.metamcp.credentials`; where the server is no unit also
        `env:NAME` for a variable of the service. Literal values are readable by
        every user, because they go through the Nix store.
      '';
    };
    cwd = keys.cwd // {
      type = types.nullOr absolutePath;
      description = ''
        Working directory of `command`. If `null`, the state of its sandbox, or
        {file}`/` where that has none; {file}`/var/lib/metamcp` with
        `isolation = "spawn"`.
      '';
    };
  };

  asDefault = lib.mapAttrs (_: lib.mkDefault);
in
{
  # No freeformType: a mistyped key fails the evaluation.
  module =
    { config, ... }:
    {
      options =
        keys
        // ofUnits
        // {
          package = mkOption {
            type = types.nullOr types.package;
            default = null;
            example = lib.literalExpression "pkgs.mcp-server-git";
            description = "Package of the server: its main program is the default of `command`.";
          };

          extraPackages = mkOption {
            type = types.listOf types.package;
            default = [ ];
            example = lib.literalExpression "[ pkgs.git ]";
            description = "Packages whose programs `command` finds in its {env}`PATH`.";
          };

          credentials = mkOption {
            type = types.attrsOf types.path;
            default = { };
            example = {
              GITEA_ACCESS_TOKEN = "/run/secrets/gitea-token";
            };
            description = ''
              Files with secrets, by the environment variable of `command` or the
              header of `url` that gets what is in the file, less the newline at
              its end. systemd reads them${if forUser then "" else " as root"} when the server starts
              (`LoadCredential=`)${
                if forUser then
                  ""
                else
                  "; no other unit gets to see them. Those of servers that are no units of their own belong to the service, and a server that it spawns, in its user, can read them all"
              }.
            '';
          };
        };

      config.command = lib.mkIf (config.package != null) (lib.mkDefault (lib.getExe config.package));
    };

  # The credentials of the service that belong to a server which is no unit.
  serviceCredentials =
    name: server: lib.mapAttrs' (key: file: lib.nameValuePair "${name}.${key}" file) server.credentials;

  # The table of a server in metamcp.toml.  Each key is a default, so that
  # services.metamcp.settings.servers has the last word.
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
      ]
    )
    // {
      env = asDefault (server.env // secrets "command");
      headers = asDefault (server.headers // secrets "url");
      health = asDefault server.health;
    };
}
