# [servers]: the servers, by name.
{
  format,
  lib,
  # For the service of a user, and not of the host.
  forUser,
}:
let
  inherit (lib) mkOption types;

  server = import ../server.nix { inherit forUser format lib; };
in
mkOption {
  type = types.attrsOf (types.submodule server);
  default = { };
  example = lib.literalExpression ''
    {
      gitea = {
        command = lib.getExe pkgs.gitea-mcp-server;
        args = [ "-t" "stdio" ];
        env.GITEA_ACCESS_TOKEN = "credential:gitea-token";
        start = "eager";
      };
      cluster.url = "http://127.0.0.1:12009/mcp";
    }
  '';
  description = ''
    MCP servers by name. A name has 1 to 40 letters, digits, `-` and
    `_`, starts and ends with a letter or digit, and has no `__`.
  '';
}
