# services.metamcp.claudeCode: the configuration of Claude Code as a client.
{ config, lib, ... }:
let
  cfg = config.services.metamcp;
  inherit (cfg.settings) listen;

  claude = import ./claude-code-entry.nix { inherit lib; };
in
{
  options.services.metamcp.claudeCode = {
    enable = lib.mkEnableOption "{file}`/etc/metamcp/mcp.json`, which declares this service to Claude Code. Pass the file to `claude --mcp-config`, or copy it into a project as {file}`.mcp.json`";

    url = claude.urlOption listen;
  };

  config = lib.mkIf (cfg.enable && cfg.claudeCode.enable) {
    environment.etc."metamcp/mcp.json".text = builtins.toJSON {
      mcpServers.metamcp = claude.entry listen cfg.claudeCode.url;
    };
  };
}
