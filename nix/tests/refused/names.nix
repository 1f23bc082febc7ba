# Cases of assertions and warnings: names.
{
  both,
  settingsServer,
  long,
  provisioned,
  server,
  settings,
  ...
}:
{
  "a server name with two underscores in a row" = {
    kind = "invalid-name";
    refused = server "a__b" { command = "a-mcp"; };
    message = "services.metamcp.servers.a__b is not a valid server name: use 1 to 40 letters";
    accepted = server "a_b" { command = "a-mcp"; };
  };
  "a server name that ends in a dash" = {
    kind = "invalid-name";
    refused = settingsServer "clock-" { command = "a-mcp"; };
    message = "services.metamcp.settings.servers.clock- is not a valid server name: use 1 to 40 letters";
    accepted = settingsServer "clock-2" { command = "a-mcp"; };
  };
  "a server name of 41 characters" = {
    kind = "invalid-name";
    refused = provisioned (long 41) { command = "a-mcp"; };
    message = "services.metamcp.settings.provision.servers.${long 41} is not a valid server name: use 1 to 40 letters";
    accepted = both [
      (provisioned (long 40) { command = "a-mcp"; })
      (settings { listen.root = "meta"; })
    ];
  };
  "a name that leaves no room for tool names" = {
    kind = "long-name";
    refused = server (long 25) { command = "a-mcp"; };
    message = "services.metamcp.servers.${long 25} has a name of 25 characters, which leaves 23 of the 64 that clients allow";
    accepted = server (long 24) { command = "a-mcp"; };
  };
  "names that differ only in capitals" = {
    kind = "similar-names";
    refused = server "Time" { command = "other-mcp"; };
    message = "services.metamcp.servers.Time and services.metamcp.servers.time differ only in capitals, - and _";
    accepted = server "times" { command = "other-mcp"; };
  };
  "names that differ only in a dash" = {
    kind = "similar-names";
    refused = both [
      (server "web-search" { command = "a-mcp"; })
      (provisioned "web_search" { command = "b-mcp"; })
    ];
    message = "services.metamcp.servers.web-search and services.metamcp.settings.provision.servers.web_search differ only in";
    accepted = both [
      (server "web-search" { command = "a-mcp"; })
      (provisioned "websearch" { command = "b-mcp"; })
    ];
  };
}
