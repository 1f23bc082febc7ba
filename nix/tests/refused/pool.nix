# Cases of assertions and warnings: the pool.
{
  both,
  server,
  settings,
  ...
}:
{
  "a reserve that is never needed" = {
    kind = "unneeded-reserve";
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
    kind = "late-reserve";
    refused = settings {
      pool = {
        size = 1;
        reserve_size = 1;
        reserve_timeout = "90s";
      };
      servers.web.command = "web-mcp";
    };
    message = "services.metamcp.settings.pool.reserve_size has no effect, because a request waits at most 1m (service.request_timeout) but may use the reserve only after 90s: reduce";
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
