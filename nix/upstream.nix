# services.metamcp.upstream: one endpoint, served as it is.
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
            description = "Streamable HTTP endpoint.";
          };

          unit = mkOption {
            type = types.nullOr (types.strMatching "[A-Za-z0-9:_.@\\-]+\\.[a-z]+");
            default = null;
            example = "mcp-proxy.service";
            description = ''
              Unit of the endpoint, where it is on this host: metamcp is started
              after it, and starts it. It cannot be {file}`metamcp.service`, which
              is metamcp's own unit: rename the unit of an endpoint that has this
              name.
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
              Era of the protocol that metamcp speaks with the endpoint.
              `legacy` begins with `initialize`, so that the endpoint gets no
              request without a session before it. `modern` needs no session.
              `auto` finds out with a `server/discover`, which has no session.
            '';
          };

          apiKeyFile = mkOption {
            type = types.nullOr types.path;
            default = null;
            example = "/run/secrets/mcp-proxy-key";
            description = ''
              File with the key that the endpoint wants in the header
              `X-API-Key`, which systemd reads as root (`LoadCredential=`).
            '';
          };

          name = mkOption {
            type = types.str;
            default = "upstream";
            example = "cluster";
            description = "Its name in {option}`services.metamcp.servers`.";
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
      An MCP endpoint that clients see as it is, without a prefix before its
      tools: metamcp holds one session with it, made before the first client is
      served, pings it every 20 s and makes a new one when it is lost. Whatever
      else is to be said of it, say in {option}`services.metamcp.servers`.
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
