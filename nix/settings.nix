# All keys of metamcp.toml: the submodule of services.metamcp.settings. Each table has
# a file in nix/settings.
{
  format,
  lib,
  # True for the Home Manager module, which is for the service of a user.
  forUser ? false,
}:
{ config, ... }:
{
  freeformType = format.type;
  options = {
    service = import ./settings/service.nix { inherit lib; };
    listen = import ./settings/listen.nix { inherit forUser lib; };
    breaker = import ./settings/breaker.nix { inherit lib; };
    pool = import ./settings/pool.nix { inherit lib; };
    health = import ./settings/health.nix { inherit lib; };
    tasks = import ./settings/tasks.nix { inherit lib; };
    tools = import ./settings/tools.nix { inherit lib; };
    search = import ./settings/search.nix { inherit lib; };
    catalog = import ./settings/catalog.nix { inherit forUser lib; };
    provision = import ./settings/provision.nix {
      inherit forUser format lib;
      inherit (config) provision;
    };
    servers = import ./settings/servers.nix { inherit forUser format lib; };
  };
}
