# The systems that tests/systemd/run --servers boots and switches between, as lists of
# modules by name. `readme` is the configuration in README.md.
{ readme }:
let
  # The service with another setting.
  setting = [
    readme
    { services.metamcp.settings.pool.size = 40; }
  ];

  # A server that runs the commands that a call asks for.
  probe = sandbox: {
    command = "/opt/proof/servers/probe";
    inherit sandbox;
  };

  # A server with other arguments, and more servers.
  more = setting ++ [
    (
      { pkgs, ... }:
      let
        inPresets =
          prefix: server:
          builtins.listToAttrs (
            map
              (preset: {
                name = prefix + preset;
                value = server { inherit preset; };
              })
              [
                "none"
                "read-only"
                "no-network"
                "strict"
              ]
          );
        node = sandbox: {
          package = pkgs.gitea-mcp-server;
          inherit sandbox;
        };
        python = sandbox: {
          package = pkgs.mcp-server-time;
          inherit sandbox;
        };
      in
      {
        users.users.alice.isNormalUser = true;
        services.metamcp.servers =
          inPresets "" probe
          // inPresets "node-" node
          // inPresets "time-" python
          // {
            time.args = [
              "--local-timezone"
              "Asia/Tokyo"
            ];

            # The strictest sandbox in which Node runs.
            node-strict = node {
              preset = "strict";
              jit = true;
            };
            # Connected before a request needs it.
            early = probe { } // {
              start = "eager";
            };
            small = probe { memoryMax = "64M"; };
            local = probe { allowedAddresses = [ "localhost" ]; };
            elsewhere = probe { allowedAddresses = [ "192.0.2.0/24" ]; };
            letters = probe {
              readOnlyPaths = [
                "/home/alice/letters"
                "/home/alice/50% old: letters"
              ];
              writablePaths = [ "/home/alice/drafts" ];
            };
            alice = probe {
              user = "alice";
              home = "read-only";
              writablePaths = [ "/home/alice/drafts" ];
            };
            # The longest valid name.
            a-server-with-a-name-of-forty-characters = probe { preset = "no-network"; };
          };
      }
    )
  ];
in
{
  readme = [ readme ];

  inherit setting;

  # The service at another address.
  address = [
    readme
    { services.metamcp.settings.listen.http = "127.0.0.1:12012"; }
  ];

  inherit more;

  # The eager server with other arguments.
  early = more ++ [ { services.metamcp.servers.early.args = [ "another" ]; } ];

  # A server that is a child of the service, in addition to the server units.
  child = [
    readme
    (
      { pkgs, ... }:
      {
        services.metamcp.servers.spawned = {
          package = pkgs.mcp-server-filesystem;
          args = [ "/srv" ];
          isolation = "spawn";
        };
      }
    )
  ];

  # One endpoint in a unit of this host, served unchanged.
  upstream = [
    readme
    {
      services.metamcp.upstream = {
        url = "http://127.0.0.1:12009/mcp";
        unit = "metamcp-peer.service";
        apiKeyFile = "/run/secrets/upstream";
      };
      systemd.services.metamcp-peer = {
        environment.PORT = "12009";
        serviceConfig.ExecStart = "/opt/mcp/bin/server-everything streamableHttp";
      };
    }
  ];
}
