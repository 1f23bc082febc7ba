# What is refused or warned about: servers that are ourselves.
{
  both,
  exact,
  server,
  settings,
  ...
}:
let
  # An aggregator on this host, which metamcp serves as it is.
  aggregator = unit: {
    services.metamcp.upstream = {
      url = "http://127.0.0.1:12009/mcp";
      inherit unit;
    };
  };
in
{
  "a server at metamcp's own address" = {
    kind = "own-url";
    refused = server "loop" { url = "http://localhost:12011/mcp"; };
    message = "services.metamcp.servers.loop.url is http://localhost:12011/mcp, where metamcp itself listens: give the address of the server, or another port";
    accepted = server "loop" { url = "http://localhost:12012/mcp"; };
  };
  "an upstream at the port of metamcp" = {
    kind = "own-url";
    refused.services.metamcp.upstream.url = "http://127.0.0.1:12011/mcp";
    message = "services.metamcp.upstream.url is http://127.0.0.1:12011/mcp, where metamcp itself listens: give the address of the server, or another port to services.metamcp.settings.listen.http";
    accepted = both [
      { services.metamcp.upstream.url = "http://127.0.0.1:12011/mcp"; }
      (settings { listen.http = "127.0.0.1:12021"; })
    ];
  };
  "a server at the usual port of an address that metamcp has" = {
    kind = "own-url";
    refused = both [
      (server "loop" { url = "http://127.0.0.2/mcp"; })
      (settings { listen.http = "127.0.0.1:80"; })
    ];
    message = "services.metamcp.servers.loop.url is http://127.0.0.2/mcp, where metamcp itself listens";
    accepted = both [
      (server "loop" { url = "http://192.0.2.1/mcp"; })
      (settings { listen.http = "127.0.0.1:80"; })
    ];
  };
  "an upstream that is the unit of metamcp" = {
    kind = "own-unit";
    refused.services.metamcp.upstream = {
      url = "http://127.0.0.1:12009/mcp";
      unit = "metamcp.service";
    };
    message = "services.metamcp.upstream.unit is metamcp's own unit: give that of the upstream";
    accepted.services.metamcp.upstream = {
      url = "http://127.0.0.1:12009/mcp";
      unit = "mcp-proxy.service";
    };
  };
  "another service with the name of metamcp's unit" = {
    kind = "unit-taken";
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
  "another service with the name of metamcp's unit, which is a script" = {
    kind = "unit-taken";
    refused.systemd.services.metamcp.script = "exec /opt/aggregator/bin/metamcp";
    message = "services.metamcp.enable adds metamcp.service, but systemd.services.metamcp gives this unit a second ExecStart=, so that systemd starts neither program: rename the other service, for example to systemd.services.mcp-aggregator.";
    # This changes the unit of metamcp, and is no other service.
    accepted.systemd.services.metamcp = {
      environment.RUST_BACKTRACE = "1";
      serviceConfig.ExecStart = [
        ""
        "/opt/metamcp-next/bin/metamcp serve"
      ];
    };
  };
  "another service with an alias that is the name of metamcp's unit" = {
    kind = "unit-taken";
    refused.systemd.services.mcp-aggregator = {
      aliases = [ "metamcp.service" ];
      serviceConfig.ExecStart = "/opt/aggregator/bin/metamcp";
    };
    message = "services.metamcp.enable adds metamcp.service, but systemd.services.mcp-aggregator.aliases gives this name to another service: remove the alias.";
    accepted.systemd.services.mcp-aggregator.serviceConfig.ExecStart = "/opt/aggregator/bin/metamcp";
  };
  "another service in the directories of metamcp" = {
    kind = "directory-taken";
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
    kind = "directory-taken";
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
  "a server that is the bridge to metamcp" = {
    kind = "own-command";
    refused = server "bridge" {
      command = "/run/current-system/sw/bin/metamcp";
      args = [ "stdio" ];
    };
    message = "services.metamcp.servers.bridge.command is metamcp's own bridge to this service, which would call itself: remove the server";
    accepted = server "bridge" {
      command = "/run/current-system/sw/bin/metamcp";
      args = [
        "stdio"
        "--socket"
        "/run/other/control.sock"
      ];
    };
  };
  "a server at metamcp's own control socket" = {
    kind = "own-socket";
    refused = exact "control" { socket = "/run/metamcp/control.sock"; };
    message = "services.metamcp.settings.servers.control.socket is metamcp's own control socket: give the socket of the server's unit";
    accepted = exact "control" { socket = "/run/metamcp-servers/control.sock"; };
  };
}
