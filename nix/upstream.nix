# services.metamcp.upstream: one endpoint that metamcp serves unchanged.
{ config, lib, ... }:
let
  inherit (lib) mkOption types;
  inherit (import ./types.nix { inherit lib; }) httpUrl;

  cfg = config.services.metamcp;
  inherit (cfg) upstream;
in
{
  options.services.metamcp.upstream = mkOption {
    type = types.nullOr (
      types.submodule {
        options = {
          url = mkOption {
            type = httpUrl;
            example = "http://127.0.0.1:12009/mcp";
            description = "The streamable HTTP endpoint.";
          };

          unit = mkOption {
            type = types.nullOr (types.strMatching "[A-Za-z0-9:_.@\\-]+\\.[a-z]+");
            default = null;
            example = "mcp-proxy.service";
            description = ''
              The systemd unit of the endpoint, if it is on this host. metamcp
              starts the unit, and starts after it. The unit cannot be
              {file}`metamcp.service`, which is metamcp's own unit. Rename the
              unit of an endpoint that has this name.
            '';
          };

          era = mkOption {
            type = types.enum [
              "auto"
              "legacy"
              "modern"
            ];
            default = "legacy";
            example = "auto";
            description = ''
              The era of the protocol that metamcp speaks with the endpoint.
              `legacy`: metamcp begins with `initialize`, and sends no request
              before it has a session. `modern`: there are no sessions. `auto`:
              metamcp asks the endpoint with a `server/discover`, which it sends
              without a session.
            '';
          };

          apiKeyFile = mkOption {
            type = types.nullOr types.path;
            default = null;
            example = "/run/secrets/mcp-proxy-key";
            description = ''
              The file with the key that the endpoint expects in the header
              `X-API-Key`. systemd reads the file as root (`LoadCredential=`).
            '';
          };

          name = mkOption {
            type = types.str;
            default = "upstream";
            example = "cluster";
            description = "The name of the endpoint in {option}`services.metamcp.servers`.";
          };
        };
      }
    );
    default = null;
    example = {
      url = "http://127.0.0.1:12009/mcp";
      unit = "mcp-proxy.service";
      apiKeyFile = "/run/secrets/mcp-proxy-key";
    };
    description = ''
      An MCP endpoint that clients see unchanged, without a prefix before the
      names of its tools. metamcp opens one session with it before it serves the
      first client. It pings the endpoint every 20 s, and opens a new session
      when the session is lost. Set all other options of the endpoint in
      {option}`services.metamcp.servers`.
    '';
  };

  config = lib.mkIf (cfg.enable && upstream != null) {
    services.metamcp = {
      servers.${upstream.name} = {
        url = lib.mkDefault upstream.url;
        era = lib.mkDefault upstream.era;
        start = lib.mkDefault "prewarm";
        health.interval = lib.mkDefault "20s";
        credentials = lib.mkIf (upstream.apiKeyFile != null) { X-API-Key = upstream.apiKeyFile; };
      };
      settings.listen.root = lib.mkDefault "passthrough:${upstream.name}";
    };

    systemd.services.metamcp = lib.mkIf (upstream.unit != null) {
      after = [ upstream.unit ];
      wants = [ upstream.unit ];
    };
  };
}
