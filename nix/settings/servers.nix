# [servers]: the servers, by name.
{
  format,
  lib,
  # True for the Home Manager module, which is for the service of a user.
  forUser,
}:
let
  inherit (lib) mkOption types;

  server = import ../server-table.nix { inherit forUser format lib; };
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
    The MCP servers, by name. A name has 1 to 40 letters, digits, `-`
    and single `_`, with a letter or digit at both ends.
  '';
}
