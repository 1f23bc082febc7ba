# What is refused or warned about: ways to a server.
{
  both,
  exact,
  provisioned,
  server,
  settings,
  ...
}:
{
  "a server with both a command and a url" = {
    kind = "way";
    refused = server "time" { url = "http://127.0.0.1:9000/mcp"; };
    message = "services.metamcp.servers.time needs one of command, url and socket: set `package` or `command` for a program";
    accepted = server "clock" { url = "http://127.0.0.1:9000/mcp"; };
  };
  "a server with neither a command nor a url" = {
    kind = "way";
    refused = server "nothing" { };
    message = "services.metamcp.servers.nothing needs one of command, url and socket: set `package` or `command`";
    accepted =
      { pkgs, ... }:
      {
        services.metamcp.servers.nothing.package = pkgs.bash;
      };
  };
  "a server with both a url and a socket" = {
    kind = "way";
    refused = exact "cluster" {
      url = "http://127.0.0.1:9000/mcp";
      socket = "/run/cluster.sock";
    };
    message = "services.metamcp.settings.servers.cluster needs one of command, url and socket: set `command`";
    accepted = exact "cluster" { socket = "/run/cluster.sock"; };
  };
  "a server to be provisioned that cannot be reached" = {
    kind = "way";
    refused = provisioned "nothing" { };
    message = "services.metamcp.settings.provision.servers.nothing needs one of command, url and socket: set `command`";
    accepted = provisioned "nothing" { command = "a-mcp"; };
  };
  "a server that its settings make reachable in another way too" = {
    kind = "way";
    refused = exact "time" { url = "http://127.0.0.1:9000/mcp"; };
    message = "services.metamcp.settings.servers.time makes services.metamcp.servers.time reachable in another way too: remove one";
    accepted = exact "time" { retry = "never"; };
  };
  "a server that is declared and may be provisioned" = {
    kind = "provisioned-and-there";
    refused = provisioned "time" { command = "other-mcp"; };
    message = "services.metamcp.settings.provision.servers.time is declared in services.metamcp.servers too";
    accepted = provisioned "hours" { command = "other-mcp"; };
  };
  "a server that is declared twice" = {
    kind = "twice";
    refused = provisioned "hours" { command = "time-mcp"; };
    message = "services.metamcp.servers.time and services.metamcp.settings.provision.servers.hours are the same server, which so is started and asked once for each: keep one";
    accepted = provisioned "hours" {
      command = "time-mcp";
      args = [ "--utc" ];
    };
  };
  "a group of operators that does not exist" = {
    kind = "group-unknown";
    refused = settings { listen.control_group = "operators"; };
    message = "services.metamcp.settings.listen.control_group is operators, and there is no such group: declare users.groups.operators";
    accepted = both [
      { users.groups.operators = { }; }
      (settings { listen.control_group = "operators"; })
    ];
  };
  "a unit that is declared twice" = {
    kind = "twice";
    refused = both [
      (server "git-a" { command = "git-mcp"; })
      (server "git-b" { command = "git-mcp"; })
    ];
    message = "services.metamcp.servers.git-a and services.metamcp.servers.git-b are the same server";
    # With another user's rights it is another server.
    accepted = both [
      { users.users.alice.isNormalUser = true; }
      (server "git-a" {
        command = "git-mcp";
        sandbox.user = "alice";
      })
      (server "git-b" { command = "git-mcp"; })
    ];
  };
  "a unit that is declared twice and keeps nothing" = {
    kind = "twice";
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
    message = "services.metamcp.servers.memory-a and services.metamcp.servers.memory-b are the same server";
    # With a state each they are two.
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
    kind = "twice";
    refused = both [
      (server "a" { url = "http://127.0.0.1:9000/mcp"; })
      (exact "b" { url = "http://127.0.0.1:9000/mcp"; })
    ];
    message = "services.metamcp.servers.a and services.metamcp.settings.servers.b are the same server";
    # With another user's key it is another server.
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
