# Cases of assertions and warnings: other services with the unit or the directories of metamcp.
{ both, settings, ... }:
let
  # An aggregator on this host that metamcp serves unchanged.
  aggregator = unit: {
    services.metamcp.upstream = {
      url = "http://127.0.0.1:12009/mcp";
      inherit unit;
    };
  };
in
{
  "another service with the name of metamcp's unit" = {
    kind = "unit-conflict";
    refused = both [
      {
        _file = "/etc/nixos/aggregator.nix";
        systemd.services.metamcp.serviceConfig.ExecStart = "/opt/aggregator/bin/metamcp";
      }
      (aggregator "metamcp.service")
    ];
    message = "services.metamcp.enable adds metamcp.service, but systemd.services.metamcp in /etc/nixos/aggregator.nix gives this unit a second ExecStart=, so that systemd starts neither program: rename the other service, for example to systemd.services.mcp-aggregator, and set services.metamcp.upstream.unit = \"mcp-aggregator.service\".";
    accepted = both [
      { systemd.services.mcp-aggregator.serviceConfig.ExecStart = "/opt/aggregator/bin/metamcp"; }
      (aggregator "mcp-aggregator.service")
    ];
  };
  "another service with a script and the name of metamcp's unit" = {
    kind = "unit-conflict";
    refused.systemd.services.metamcp.script = "exec /opt/aggregator/bin/metamcp";
    message = "services.metamcp.enable adds metamcp.service, but systemd.services.metamcp gives this unit a second ExecStart=, so that systemd starts neither program: rename the other service, for example to systemd.services.mcp-aggregator.";
    # This definition changes the unit of metamcp; it is not another service.
    accepted.systemd.services.metamcp = {
      environment.RUST_BACKTRACE = "1";
      serviceConfig.ExecStart = [
        ""
        "/opt/metamcp-next/bin/metamcp serve"
      ];
    };
  };
  "another service with an alias that is the name of metamcp's unit" = {
    kind = "unit-conflict";
    refused.systemd.services.mcp-aggregator = {
      aliases = [ "metamcp.service" ];
      serviceConfig.ExecStart = "/opt/aggregator/bin/metamcp";
    };
    message = "services.metamcp.enable adds metamcp.service, but systemd.services.mcp-aggregator.aliases gives this name to another service: remove the alias.";
    accepted.systemd.services.mcp-aggregator.serviceConfig.ExecStart = "/opt/aggregator/bin/metamcp";
  };
  "another service in the directories of metamcp" = {
    kind = "directory-conflict";
    refused.systemd.services.mcp-aggregator.serviceConfig = {
      ExecStart = "/opt/aggregator/bin/metamcp";
      StateDirectory = "aggregator metamcp:aggregator-link";
    };
    message = "services.metamcp.enable uses /var/lib/metamcp, and systemd.services.mcp-aggregator uses it too (StateDirectory=): give that service another directory, for example mcp-aggregator.";
    accepted.systemd.services.mcp-aggregator.serviceConfig = {
      ExecStart = "/opt/aggregator/bin/metamcp";
      RuntimeDirectory = [
        "mcp-aggregator"
        "metamcp-aggregator"
      ];
      StateDirectory = "mcp-aggregator";
    };
  };
  "another service in the directory of metamcp's control socket" = {
    kind = "directory-conflict";
    refused.systemd.services.mcp-aggregator.serviceConfig.RuntimeDirectory = [
      "mcp-aggregator"
      "metamcp"
    ];
    message = "services.metamcp.enable uses /run/metamcp, and systemd.services.mcp-aggregator uses it too (RuntimeDirectory=): give";
    accepted = both [
      { systemd.services.mcp-aggregator.serviceConfig.RuntimeDirectory = "metamcp"; }
      (settings { listen.control = "/run/metamcp-control/control.sock"; })
    ];
  };
}
