# What is refused or warned about: names.
{
  both,
  exact,
  long,
  provisioned,
  server,
  settings,
  ...
}:
{
  "a server name with two underscores in a row" = {
    kind = "name";
    refused = server "a__b" { command = "a-mcp"; };
    message = "services.metamcp.servers.a__b is not a valid name: use 1 to 40 letters";
    accepted = server "a_b" { command = "a-mcp"; };
  };
  "a server name that ends in a dash" = {
    kind = "name";
    refused = exact "clock-" { command = "a-mcp"; };
    message = "services.metamcp.settings.servers.clock- is not a valid name: use 1 to 40 letters";
    accepted = exact "clock-2" { command = "a-mcp"; };
  };
  "a server name of 41 characters" = {
    kind = "name";
    refused = provisioned (long 41) { command = "a-mcp"; };
    message = "services.metamcp.settings.provision.servers.${long 41} is not a valid name: use 1 to 40 letters";
    accepted = both [
      (provisioned (long 40) { command = "a-mcp"; })
      (settings { listen.root = "meta"; })
    ];
  };
  "a name that leaves tools no room" = {
    kind = "name-long";
    refused = server (long 25) { command = "a-mcp"; };
    message = "services.metamcp.servers.${long 25} has a name of 25 characters, which leaves 23 of the 64 that clients allow";
    accepted = server (long 24) { command = "a-mcp"; };
  };
  "names that differ in nothing but capitals" = {
    kind = "names-alike";
    refused = server "Time" { command = "other-mcp"; };
    message = "services.metamcp.servers.Time and services.metamcp.servers.time differ in nothing but capitals, - and _";
    accepted = server "times" { command = "other-mcp"; };
  };
  "names that differ in nothing but a dash" = {
    kind = "names-alike";
    refused = both [
      (server "web-search" { command = "a-mcp"; })
      (provisioned "web_search" { command = "b-mcp"; })
    ];
    message = "services.metamcp.servers.web-search and services.metamcp.settings.provision.servers.web_search differ in nothing";
    accepted = both [
      (server "web-search" { command = "a-mcp"; })
      (provisioned "websearch" { command = "b-mcp"; })
    ];
  };
}
