# Tests of generated files: declared servers and their units.
{
  document,
  server,
  service,
  socket,
  unit,
  ...
}:
{
  "a name of 40 characters gives a user name of 31" = {
    module = { pkgs, ... }: {
      services.metamcp = {
        servers.a123456789012345678901234567890123456789.package = pkgs.bash;
        # In this view, names of tools have no prefix, so that the name is not too long.
        settings.listen.root = "meta";
      };
    };
    has.${unit "a123456789012345678901234567890123456789"} = [
      "User=mcp-a12345678901234567-${
        builtins.substring 0 8 (builtins.hashString "sha256" "a123456789012345678901234567890123456789")
      }"
    ];
    has.${document} = [
      "socket = \"/run/metamcp-servers/a123456789012345678901234567890123456789.sock\""
    ];
  };
  "a socket accepts twice the largest number of connections, and two more" = {
    module = server {
      sharing = "session";
      max_connections = 8;
    };
    has.${socket "notes"} = [
      "Accept=true"
      "MaxConnections=18"
      "SocketGroup=metamcp-servers"
      "SocketMode=0660"
    ];
    has.${document} = [
      "max_connections = 8"
      "sharing = \"session\""
    ];
  };
  "a socket accepts the number of connections in settings" = {
    module = {
      imports = [ (server { max_connections = 8; }) ];
      services.metamcp.settings.servers.notes = {
        sharing = "session";
        max_connections = 64;
      };
    };
    has.${socket "notes"} = [ "MaxConnections=130" ];
    has.${document} = [ "max_connections = 64" ];
  };
  "values of env are literal, and a secret is a credential of the unit" = {
    module = {
      imports = [
        (server {
          cwd = "/srv/100%";
          env = {
            PATH = "/opt/bin";
            SHARE = "100% $HOME \"quoted\"";
            SHARED_TOKEN = "credential:shared";
          };
          credentials.TOKEN = "/run/secrets/100%";
        })
      ];
      services.metamcp.credentials.shared = "/run/secrets/shared";
    };
    has.${unit "notes"} = [
      "Environment=\"PATH=/opt/bin\""
      "Environment=\"SHARE=100%% $HOME \\\"quoted\\\"\""
      "LoadCredential=SHARED_TOKEN:/run/secrets/shared"
      "LoadCredential=TOKEN:/run/secrets/100%%"
      "WorkingDirectory=/srv/100%%"
    ];
    lacks.${service} = [
      "LoadCredential=TOKEN:*"
      "LoadCredential=SHARED_TOKEN:*"
      "LoadCredential=shared:*"
    ];
    lacks.${document} = [ "[servers.notes.env]" ];
  };
  "a secret that a unit and the service refer to goes to both" = {
    module = {
      imports = [ (server { env.TOKEN = "credential:shared"; }) ];
      services.metamcp = {
        credentials = {
          shared = "/run/secrets/shared";
          own = "/run/secrets/own";
        };
        settings.servers.cluster = {
          url = "http://127.0.0.1:12009/mcp";
          headers.Authorization = "credential:shared";
        };
      };
    };
    has.${unit "notes"} = [ "LoadCredential=TOKEN:/run/secrets/shared" ];
    has.${service} = [
      "LoadCredential=own:/run/secrets/own"
      "LoadCredential=shared:/run/secrets/shared"
    ];
  };
  "a spawned server has its command in the configuration, and its secrets in the service" = {
    module =
      { pkgs, ... }:
      {
        services.metamcp.servers.notes = {
          package = pkgs.bash;
          isolation = "spawn";
          args = [ "-x" ];
          extraPackages = [ pkgs.metamcp ];
          env.GREETING = "good morning";
          credentials.TOKEN = "/run/secrets/token";
        };
      };
    without = [
      (socket "notes")
      (unit "notes")
    ];
    has.${service} = [
      "Environment=\"PATH=/opt/metamcp/bin:*"
      "LoadCredential=notes.TOKEN:/run/secrets/token"
    ];
    has.${document} = [
      "GREETING = \"good morning\""
      "TOKEN = \"credential:notes.TOKEN\""
      "args = [\"-x\"]"
      "command = \"/usr/bin/bash\""
    ];
  };
  "the secrets of a url become headers" = {
    module.services.metamcp.servers.cluster = {
      url = "http://127.0.0.1:12009/mcp";
      credentials.X-API-Key = "/run/secrets/key";
    };
    without = [ (socket "cluster") ];
    has.${service} = [ "LoadCredential=cluster.X-API-Key:/run/secrets/key" ];
    has.${document} = [ "X-API-Key = \"credential:cluster.X-API-Key\"" ];
  };
  "settings take precedence over a declared server" = {
    module = {
      imports = [
        (server {
          start = "eager";
          health.interval = "5s";
        })
      ];
      services.metamcp.settings.servers.notes = {
        start = "lazy";
        health.interval = "9s";
      };
    };
    has.${document} = [
      "interval = \"9s\""
      "start = \"lazy\""
    ];
  };
}
