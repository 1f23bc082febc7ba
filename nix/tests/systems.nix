# The systems that tests/systemd/run --servers boots and switches between: lists
# of modules, by name.  `readme` is the configuration in README.md.
{ readme }:
let
  probe = preset: {
    command = "/opt/proof/servers/probe";
    sandbox = { inherit preset; };
  };
in
{
  readme = [ readme ];

  # Another setting of the service.
  setting = [
    readme
    { services.metamcp.settings.pool.size = 30; }
  ];

  # A server with other arguments, and more servers: in each preset one that tells
  # what it can do, a Node and a Python where they can live.
  more = [
    readme
    (
      { lib, pkgs, ... }:
      let
        named = prefix: lib.mapAttrs' (preset: lib.nameValuePair "${prefix}-${preset}");
        presets = lib.genAttrs [
          "none"
          "read-only"
          "no-network"
          "strict"
        ];
        of = package: preset: {
          inherit package;
          sandbox = { inherit preset; };
        };
      in
      {
        services.metamcp.servers =
          presets probe
          // named "node" (removeAttrs (presets (of pkgs.gitea-mcp-server)) [ "strict" ])
          // named "time" (presets (of pkgs.mcp-server-time))
          // {
            time.args = [
              "--local-timezone"
              "Asia/Tokyo"
            ];
            small = lib.recursiveUpdate (probe "read-only") { sandbox.memoryMax = "64M"; };
            # There before anybody asks for it.
            early = probe "read-only" // {
              start = "eager";
            };
            # As strict as Node can have it.
            node-strict = lib.recursiveUpdate (of pkgs.gitea-mcp-server "strict") { sandbox.jit = true; };
          };
      }
    )
  ];

  # A server that is a child of the service, beside those that are units.
  child = [
    readme
    (
      { pkgs, ... }:
      {
        services.metamcp.servers.spawned = {
          package = pkgs.mcp-server-filesystem;
          args = [ "/srv/notes" ];
          isolation = "spawn";
        };
      }
    )
  ];
}
