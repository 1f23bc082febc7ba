# What is refused or warned about: the sandbox.
{ both, server, ... }:
{
  "a sandbox of a server that is spawned" = {
    kind = "sandbox-without-a-unit";
    refused = server "time" {
      isolation = "spawn";
      sandbox.memoryMax = "64M";
    };
    message = "services.metamcp.servers.time.sandbox has no effect, because the server runs in the sandbox of metamcp.service: remove it, or set services.metamcp.servers.time.isolation = \"unit\"";
    accepted = server "time" { sandbox.memoryMax = "64M"; };
  };
  "a working directory that the server does not see" = {
    kind = "cwd-hidden";
    refused = server "time" { cwd = "/home/alice/notes"; };
    message = "services.metamcp.servers.time.cwd is /home/alice/notes, which is hidden from the server: add it to services.metamcp.servers.time.sandbox.readOnlyPaths or writablePaths, or";
    accepted = server "time" {
      cwd = "/home/alice/notes";
      sandbox.writablePaths = [ "/home/alice" ];
    };
  };
  "a working directory in a home of which the server sees nothing" = {
    kind = "cwd-hidden";
    refused = server "time" {
      cwd = "/root";
      sandbox.readOnlyPaths = [ "/home/alice" ];
    };
    message = "services.metamcp.servers.time.cwd is /root, which is hidden from the server: ";
    accepted = server "time" {
      cwd = "/root";
      sandbox.home = "read-only";
    };
  };
  "a sandbox of an endpoint" = {
    kind = "sandbox-without-a-unit";
    refused = server "web" {
      url = "http://127.0.0.1:9000/mcp";
      sandbox.preset = "strict";
    };
    message = "services.metamcp.servers.web.sandbox has no effect, because metamcp does not start the server: remove it.";
    accepted = server "web" { url = "http://127.0.0.1:9000/mcp"; };
  };
  "addresses of a server without a network" = {
    kind = "without-effect";
    refused = server "time" {
      sandbox = {
        preset = "strict";
        allowedAddresses = [ "localhost" ];
      };
    };
    message = "services.metamcp.servers.time.sandbox.allowedAddresses has no effect, because the server has no network: set services.metamcp.servers.time.sandbox.network = true, or remove it.";
    accepted = server "time" {
      sandbox = {
        preset = "strict";
        network = true;
        allowedAddresses = [ "localhost" ];
      };
    };
  };
  "a header for a program" = {
    kind = "without-effect";
    refused = server "time" { headers.Accept-Language = "en"; };
    message = "services.metamcp.servers.time.headers has no effect, because a program gets none: remove it, or use env.";
    accepted = server "time" { env.LANG = "en"; };
  };
  "a variable for an address" = {
    kind = "without-effect";
    refused = server "web" {
      url = "http://127.0.0.1:9000/mcp";
      env.LANG = "en";
    };
    message = "services.metamcp.servers.web.env has no effect, because metamcp does not start the server: remove it.";
    accepted = server "web" {
      url = "http://127.0.0.1:9000/mcp";
      headers.Accept-Language = "en";
    };
  };
  "a header for a socket" = {
    kind = "without-effect";
    refused = server "web" {
      socket = "/run/web.sock";
      headers.Accept-Language = "en";
    };
    message = "services.metamcp.servers.web.headers has no effect, because a socket has none: remove it.";
    accepted = server "web" { socket = "/run/web.sock"; };
  };
  "packages of a server with a URL" = {
    kind = "without-effect";
    refused =
      { pkgs, ... }:
      server "web" {
        url = "http://127.0.0.1:9000/mcp";
        extraPackages = [ pkgs.bash ];
      };
    message = "services.metamcp.servers.web.extraPackages has no effect, because metamcp does not start the server: remove it.";
    accepted = server "web" { url = "http://127.0.0.1:9000/mcp"; };
  };
  "a user who has the name of the service's own" = {
    kind = "user-taken";
    refused.users.users.metamcp-service.isSystemUser = true;
    message = "services.metamcp.user is null, for metamcp-service, a user and group that systemd makes, and users.users or users.groups has one of that name: rename it, or set services.metamcp.user.";
    accepted = {
      services.metamcp.user = "metamcp-service";
      users.users.metamcp-service.isSystemUser = true;
    };
  };
  "a user who has the name that systemd would make" = {
    kind = "user-taken";
    refused = both [
      (server "time" { })
      { users.users.mcp-time.isSystemUser = true; }
    ];
    message = "services.metamcp.servers.time is to run as mcp-time, a user that systemd makes, and users.users has one of that name: rename the server or the user, or set services.metamcp.servers.time.sandbox.user.";
    accepted = both [
      (server "time" { sandbox.user = "mcp-time"; })
      { users.users.mcp-time.isSystemUser = true; }
    ];
  };
  "a user of a server who does not exist" = {
    kind = "user-unknown";
    refused = server "time" { sandbox.user = "alice"; };
    message = "services.metamcp.servers.time.sandbox.user is alice, and there is no such user: declare users.users.alice";
    accepted = both [
      (server "time" { sandbox.user = "alice"; })
      { users.users.alice.isNormalUser = true; }
    ];
  };
  "a user of the service who does not exist" = {
    kind = "user-unknown";
    refused.services.metamcp.user = "alice";
    message = "services.metamcp.user is alice, and there is no such user: declare users.users.alice";
    accepted = {
      services.metamcp.user = "alice";
      users.users.alice.isNormalUser = true;
    };
  };
  "a group that does not exist" = {
    kind = "group-unknown";
    refused = server "time" { sandbox.group = "notes"; };
    message = "services.metamcp.servers.time.sandbox.group is notes, and there is no such group: declare users.groups.notes";
    accepted = both [
      (server "time" { sandbox.group = "notes"; })
      { users.groups.notes = { }; }
    ];
  };
}
