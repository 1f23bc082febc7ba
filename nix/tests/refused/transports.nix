# Cases of assertions and warnings: the transport of a server, and options that it excludes.
{
  provisioned,
  server,
  settingsServer,
  ...
}:
{
  "a server with both a command and a url" = {
    kind = "transport";
    refused = server "time" { url = "http://127.0.0.1:9000/mcp"; };
    message = "services.metamcp.servers.time needs exactly one of command, url and socket: set `package` or `command` for a program";
    accepted = server "clock" { url = "http://127.0.0.1:9000/mcp"; };
  };
  "a server with neither a command nor a url" = {
    kind = "transport";
    refused = server "nothing" { };
    message = "services.metamcp.servers.nothing needs exactly one of command, url and socket: set `package` or `command`";
    accepted =
      { pkgs, ... }:
      {
        services.metamcp.servers.nothing.package = pkgs.bash;
      };
  };
  "a server with both a url and a socket" = {
    kind = "transport";
    refused = settingsServer "cluster" {
      url = "http://127.0.0.1:9000/mcp";
      socket = "/run/cluster.sock";
    };
    message = "services.metamcp.settings.servers.cluster needs exactly one of command, url and socket: set `command`";
    accepted = settingsServer "cluster" { socket = "/run/cluster.sock"; };
  };
  "a provisionable server without a transport" = {
    kind = "transport";
    refused = provisioned "nothing" { };
    message = "services.metamcp.settings.provision.servers.nothing needs exactly one of command, url and socket: set `command`";
    accepted = provisioned "nothing" { command = "a-mcp"; };
  };
  "a server with a second transport in its settings" = {
    kind = "transport";
    refused = settingsServer "time" { url = "http://127.0.0.1:9000/mcp"; };
    message = "services.metamcp.settings.servers.time gives services.metamcp.servers.time a second transport: remove one";
    accepted = settingsServer "time" { retry = "never"; };
  };
  "a header for a program" = {
    kind = "without-effect";
    refused = server "time" { headers.Accept-Language = "en"; };
    message = "services.metamcp.servers.time.headers has no effect, because a program receives no headers: remove it, or use env.";
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
    message = "services.metamcp.servers.web.headers has no effect, because a socket carries no headers: remove it.";
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
  "a login for a program" = {
    kind = "without-effect";
    refused = server "time" { auth = "none"; };
    message = "services.metamcp.servers.time.auth has no effect, because it belongs to a server with a `url`: remove it.";
    accepted = server "web" {
      url = "https://mcp.example.org/mcp";
      auth = "none";
    };
  };
  "a certificate authority for a socket" = {
    kind = "without-effect";
    refused = server "web" {
      socket = "/run/web.sock";
      tls.ca = "/etc/ca.pem";
    };
    message = "services.metamcp.servers.web.tls has no effect, because it belongs to a server with a `url`: remove it.";
    accepted = server "web" { socket = "/run/web.sock"; };
  };
  "TLS settings without TLS" = {
    kind = "tls-without-https";
    refused = settingsServer "web" {
      url = "http://192.0.2.1/mcp";
      tls.ca = "/etc/ca.pem";
    };
    message = "services.metamcp.settings.servers.web.tls has no effect on the http:// address in services.metamcp.settings.servers.web.url: remove it";
    accepted = settingsServer "web" {
      url = "https://192.0.2.1/mcp";
      tls.ca = "/etc/ca.pem";
    };
  };
}
