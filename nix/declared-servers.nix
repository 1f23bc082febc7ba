# All servers of a configuration, from each option that declares servers, and the
# values of their variables and headers. The assertions and warnings use them.
{ lib }:
# services.metamcp, of NixOS or of Home Manager.
cfg:
let
  inherit (cfg) settings;
  upstream = cfg.upstream or null;

  # Each server: its name, the option that declares it (`option`), the option that
  # holds its other settings (`place`), its value, and whether it runs in a unit.
  declared = lib.mapAttrsToList (
    name: server:
    let
      place = "services.metamcp.servers.${name}";
    in
    {
      inherit name place server;
      option = if upstream != null && name == upstream.name then "services.metamcp.upstream" else place;
      isUnit = isUnit server;
    }
  ) cfg.servers;
  fromSettings = lib.mapAttrsToList (name: server: rec {
    inherit name server;
    option = "services.metamcp.settings.servers.${name}";
    place = option;
    isUnit = false;
  }) (removeAttrs settings.servers (lib.attrNames cfg.servers));
  provisionable = lib.mapAttrsToList (name: server: rec {
    inherit name server;
    option = "services.metamcp.settings.provision.servers.${name}";
    place = option;
    isUnit = false;
  }) settings.provision.servers;
  servers = declared ++ fromSettings ++ provisionable;

  # The sandbox of a server that sets none of its options.
  defaultSandbox =
    (lib.evalModules { modules = [ (import ./sandbox.nix { inherit lib; }).module ]; }).config;

  isUnit = server: server.command != null && server.isolation or "spawn" == "unit";
  transports =
    server:
    lib.filter (transport: server.${transport} != null) [
      "command"
      "url"
      "socket"
    ];
  # True if a server has exactly one transport.
  hasOneTransport = { server, ... }: builtins.length (transports server) == 1;
  withCommand = lib.filter ({ server, ... }: server.command != null) servers;
  # The table of a server in metamcp.toml, after all options are merged.
  effective = name: settings.servers.${name} or settings.provision.servers.${name};

  # The variables and headers of a server, each with its option.
  serverValues =
    {
      place,
      server,
      isUnit,
      ...
    }:
    lib.concatMap
      (
        table:
        lib.mapAttrsToList (key: value: {
          inherit isUnit key value;
          option = "${place}.${table}.${key}";
          server = place;
        }) server.${table}
      )
      [
        "env"
        "headers"
      ];

  # The locations of secrets and certificates for an endpoint, each with its option.
  endpointValues =
    { place, server, ... }:
    let
      tables = {
        inherit (server) tls;
        auth = if builtins.isAttrs server.auth then { inherit (server.auth) client_secret; } else { };
      };
    in
    lib.concatLists (
      lib.mapAttrsToList (
        table:
        lib.mapAttrsToList (
          key: value: {
            inherit key value;
            option = "${place}.${table}.${key}";
          }
        )
      ) (lib.mapAttrs (_: lib.filterAttrs (_: value: value != null)) tables)
    );

  # True if an option is below services.metamcp.servers, which has more options than
  # services.metamcp.settings.servers.
  isDeclared = lib.hasPrefix "services.metamcp.servers.";
in
{
  inherit
    declared
    defaultSandbox
    effective
    hasOneTransport
    isDeclared
    isUnit
    servers
    upstream
    withCommand
    ;

  # The variables and headers of all servers.
  values = lib.concatMap serverValues servers;

  # The locations of secrets and certificates for the endpoints of all servers.
  endpointValues = lib.concatMap endpointValues servers;
}
