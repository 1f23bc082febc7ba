# Cases of assertions and warnings: the sandbox of a server.
{ server, ... }:
{
  "a sandbox of a spawned server" = {
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
  "a working directory in a hidden home" = {
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
}
