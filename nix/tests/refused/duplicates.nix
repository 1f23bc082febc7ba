# Cases of assertions and warnings: servers that are declared twice.
{
  both,
  provisioned,
  server,
  settingsServer,
  ...
}:
{
  "a provisionable server that is declared already" = {
    kind = "provisioned-and-declared";
    refused = provisioned "time" { command = "other-mcp"; };
    message = "services.metamcp.settings.provision.servers.time has no effect, because services.metamcp.servers.time declares the server already: remove or rename one";
    accepted = provisioned "hours" { command = "other-mcp"; };
  };
  "a server that is declared twice" = {
    kind = "duplicate-server";
    refused = provisioned "hours" { command = "time-mcp"; };
    message = "services.metamcp.servers.time and services.metamcp.settings.provision.servers.hours declare the same server, so that metamcp starts and queries it once for each: keep one";
    accepted = provisioned "hours" {
      command = "time-mcp";
      args = [ "--utc" ];
    };
  };
  "a unit that is declared twice" = {
    kind = "duplicate-server";
    refused = both [
      (server "git-a" { command = "git-mcp"; })
      (server "git-b" { command = "git-mcp"; })
    ];
    message = "services.metamcp.servers.git-a and services.metamcp.servers.git-b declare the same server";
    # A server with another user is a different server.
    accepted = both [
      { users.users.alice.isNormalUser = true; }
      (server "git-a" {
        command = "git-mcp";
        sandbox.user = "alice";
      })
      (server "git-b" { command = "git-mcp"; })
    ];
  };
  "a unit without state that is declared twice" = {
    kind = "duplicate-server";
    refused = both [
      (server "memory-a" {
        command = "memory-mcp";
        sandbox.preset = "strict";
      })
      (server "memory-b" {
        command = "memory-mcp";
        sandbox.preset = "strict";
      })
    ];
    message = "services.metamcp.servers.memory-a and services.metamcp.servers.memory-b declare the same server";
    # Servers with their own state are different servers.
    accepted = both [
      (server "memory-a" {
        command = "memory-mcp";
        sandbox.preset = "no-network";
      })
      (server "memory-b" {
        command = "memory-mcp";
        sandbox.preset = "no-network";
      })
    ];
  };
  "a url that is declared twice" = {
    kind = "duplicate-server";
    refused = both [
      (server "a" { url = "http://127.0.0.1:9000/mcp"; })
      (settingsServer "b" { url = "http://127.0.0.1:9000/mcp"; })
    ];
    message = "services.metamcp.servers.a and services.metamcp.settings.servers.b declare the same server";
    # A server with another key is a different server.
    accepted = both [
      (server "a" {
        url = "http://127.0.0.1:9000/mcp";
        credentials.Authorization = "/run/secrets/a";
      })
      (server "b" {
        url = "http://127.0.0.1:9000/mcp";
        credentials.Authorization = "/run/secrets/b";
      })
    ];
  };
}
