# What is refused or warned about: the pool.
{
  both,
  server,
  settings,
  ...
}:
{
  "a reserve that is never needed" = {
    kind = "reserve-without-need";
    refused = settings { pool.reserve_size = 2; };
    message = "services.metamcp.settings.pool.reserve_size has no effect, because all servers together have at most 1 connections, and services.metamcp.settings.pool.size is 20: remove it";
    accepted = both [
      (settings { pool.reserve_size = 2; })
      (server "web" {
        command = "web-mcp";
        sharing = "session";
        max_connections = 20;
      })
    ];
  };
  "a reserve that comes too late" = {
    kind = "reserve-too-late";
    refused = settings {
      pool = {
        size = 1;
        reserve_size = 1;
        reserve_timeout = "90s";
      };
      servers.web.command = "web-mcp";
    };
    message = "services.metamcp.settings.pool.reserve_size has no effect, because a request waits for at most 60s (service.request_timeout), and may have one of the reserve after 90s: make";
    accepted = settings {
      pool = {
        size = 1;
        reserve_size = 1;
        reserve_timeout = "59s";
      };
      servers.web.command = "web-mcp";
    };
  };
}
