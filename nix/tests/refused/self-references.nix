# Cases of assertions and warnings: servers that are metamcp itself.
{
  both,
  server,
  settings,
  settingsServer,
  ...
}:
{
  "a server at metamcp's own address" = {
    kind = "own-url";
    refused = server "loop" { url = "http://localhost:12011/mcp"; };
    message = "services.metamcp.servers.loop.url is http://localhost:12011/mcp, where metamcp itself listens: set it to the address of the server, or set another port";
    accepted = server "loop" { url = "http://localhost:12012/mcp"; };
  };
  "an upstream at the port of metamcp" = {
    kind = "own-url";
    refused.services.metamcp.upstream.url = "http://127.0.0.1:12011/mcp";
    message = "services.metamcp.upstream.url is http://127.0.0.1:12011/mcp, where metamcp itself listens: set it to the address of the server, or set another port in services.metamcp.settings.listen.http";
    accepted = both [
      { services.metamcp.upstream.url = "http://127.0.0.1:12011/mcp"; }
      (settings { listen.http = "127.0.0.1:12021"; })
    ];
  };
  "a server at the default port of metamcp's own address" = {
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
    message = "services.metamcp.upstream.unit is metamcp's own unit: set it to the unit of the upstream";
    accepted.services.metamcp.upstream = {
      url = "http://127.0.0.1:12009/mcp";
      unit = "mcp-proxy.service";
    };
  };
  "a server that is the bridge to metamcp" = {
    kind = "own-command";
    refused = server "bridge" {
      command = "/run/current-system/sw/bin/metamcp";
      args = [ "stdio" ];
    };
    message = "services.metamcp.servers.bridge.command is metamcp's own bridge to this service, so that metamcp would call itself: remove the server";
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
    refused = settingsServer "control" { socket = "/run/metamcp/control.sock"; };
    message = "services.metamcp.settings.servers.control.socket is metamcp's own control socket: set it to the socket of the server's unit";
    accepted = settingsServer "control" { socket = "/run/metamcp-servers/control.sock"; };
  };
}
