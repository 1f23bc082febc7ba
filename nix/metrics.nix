# services.metamcp.metrics: the metrics at an address of their own.
{ config, lib, ... }:
let
  inherit (lib) mkOption types;

  cfg = config.services.metamcp;
  inherit (cfg) metrics;
in
{
  options.services.metamcp.metrics = {
    enable = mkOption {
      type = types.bool;
      default = false;
      example = true;
      description = ''
        Whether to serve the metrics for Prometheus at an address of their
        own, and nothing else there. A reader needs no token: the address
        and the firewall decide who may read.
      '';
    };

    listenAddress = mkOption {
      type = types.nonEmptyStr;
      default = "127.0.0.1";
      example = "::";
      description = "The IP address.";
    };

    port = mkOption {
      type = types.port;
      default = 12019;
      example = 9101;
      description = "The port.";
    };

    openFirewall = mkOption {
      type = types.bool;
      default = false;
      example = true;
      description = ''
        Whether to open the port of {option}`services.metamcp.metrics.port`
        in the firewall.
      '';
    };
  };

  config = lib.mkIf (cfg.enable && metrics.enable) {
    services.metamcp.settings.listen.metrics =
      let
        host =
          if lib.hasInfix ":" metrics.listenAddress then
            "[${metrics.listenAddress}]"
          else
            metrics.listenAddress;
      in
      "${host}:${toString metrics.port}";

    networking.firewall.allowedTCPPorts = lib.mkIf metrics.openFirewall [ metrics.port ];
  };
}
