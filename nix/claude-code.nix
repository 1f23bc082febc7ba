# services.metamcp.claudeCode: what Claude Code has to be told.
{ config, lib, ... }:
let
  inherit (lib) mkOption types;

  cfg = config.services.metamcp;
  inherit (cfg.settings) listen;

  # Where to connect to: an address that stands for all is not one.
  address = lib.replaceStrings [ "0.0.0.0:" "[::]:" ] [ "127.0.0.1:" "[::1]:" ] listen.http;
  needsToken = listen.token or null != null;
in
{
  options.services.metamcp.claudeCode = {
    enable = lib.mkEnableOption "{file}`/etc/metamcp/mcp.json`, which tells Claude Code of this service: give it to `claude --mcp-config`, or copy it as {file}`.mcp.json` into a project";

    url = mkOption {
      type = types.str;
      default = "http${lib.optionalString (listen.tls != null) "s"}://${address}/";
      defaultText = lib.literalMD "the address in {option}`services.metamcp.settings.listen.http`";
      example = "https://mcp.example.org:12011/";
      description = ''
        Where Claude Code finds the service. With a certificate it must be one
        of the names in that.
      '';
    };
  };

  config = lib.mkIf (cfg.enable && cfg.claudeCode.enable) {
    environment.etc."metamcp/mcp.json".text = builtins.toJSON {
      mcpServers.metamcp = {
        type = "http";
        inherit (cfg.claudeCode) url;
      }
      # Claude Code puts its own environment variable in.
      // lib.optionalAttrs needsToken { headers.Authorization = "Bearer \${METAMCP_TOKEN}"; };
    };
  };
}
