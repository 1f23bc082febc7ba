# The servers in a configuration, wherever they are declared, and the values that
# are given to them: for what is refused and warned about.
{ lib }:
# services.metamcp, of NixOS or of Home Manager.
cfg:
let
  inherit (cfg) settings;
  upstream = cfg.upstream or null;

  # Every server: its name, the option that declares it, the one that says all
  # else of it, what that says, and whether it is a unit of its own.
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
  exact = lib.mapAttrsToList (name: server: rec {
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
  servers = declared ++ exact ++ provisionable;

  # A sandbox of which nothing is said.
  sandbox =
    (lib.evalModules { modules = [ (import ./sandbox.nix { inherit lib; }).module ]; }).config;

  isUnit = server: server.command != null && server.isolation or "spawn" == "unit";
  ways =
    server:
    lib.filter (way: server.${way} != null) [
      "command"
      "url"
      "socket"
    ];
  # Whether it is said how to reach it, once.
  hasOneWay = { server, ... }: builtins.length (ways server) == 1;
  withCommand = lib.filter ({ server, ... }: server.command != null) servers;
  # What metamcp.toml says in the end, where that may be more.
  effective = name: settings.servers.${name} or settings.provision.servers.${name};

  # The variables and headers of a server, with the option of each.
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

  # Whether an option is below services.metamcp.servers, where a server has more.
  isDeclared = lib.hasPrefix "services.metamcp.servers.";
in
{
  inherit
    declared
    effective
    hasOneWay
    isDeclared
    isUnit
    sandbox
    servers
    upstream
    withCommand
    ;

  # The variables and headers of all.
  values = lib.concatMap serverValues servers;
}
