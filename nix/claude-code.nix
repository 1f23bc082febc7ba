# services.metamcp.claudeCode: what Claude Code has to be told.
{ config, lib, ... }:
let
  cfg = config.services.metamcp;
  inherit (cfg.settings) listen;

  claude = import ./claude-entry.nix { inherit lib; };
in
{
  options.services.metamcp.claudeCode = {
    enable = lib.mkEnableOption "{file}`/etc/metamcp/mcp.json`, which tells Claude Code of this service: give it to `claude --mcp-config`, or copy it as {file}`.mcp.json` into a project";

    url = claude.urlOption listen;
  };

  config = lib.mkIf (cfg.enable && cfg.claudeCode.enable) {
    environment.etc."metamcp/mcp.json".text = builtins.toJSON {
      mcpServers.metamcp = claude.entry listen cfg.claudeCode.url;
    };
  };
}
