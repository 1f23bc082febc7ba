# What metamcp.service says besides what is in systemd/metamcp.service.
{ lib }:
{
  group,
  settings,
  user,
}:
let
  inherit (import ./address.nix { inherit lib; }) isLocalUrl;

  identity =
    lib.optionalAttrs (user != null) (import ./user.nix user // { DynamicUser = false; })
    // lib.optionalAttrs (group != null) { Group = group; };

  servers = lib.attrValues settings.servers ++ lib.attrValues settings.provision.servers;
  hasChildren = lib.any (server: server.command != null) servers;

  # Every address that it connects to itself.
  urls =
    lib.filter (url: url != null) (map (server: server.url) servers)
    ++ lib.optional (settings.search.embedding != null) settings.search.embedding.url
    ++ lib.optional (settings.provision.registry != null) settings.provision.registry.url;
in
identity
# Where no server is a child, nothing runs in this sandbox but metamcp itself,
# which needs none of what systemd/metamcp.service has to leave open for others.
// lib.optionalAttrs (!hasChildren) (
  {
    MemoryDenyWriteExecute = true;
    ProcSubset = "pid";
  }
  # Sockets that systemd listens on are not affected.
  // (
    if urls == [ ] then
      {
        # Not PrivateNetwork=: whose a connection is, the kernel tells only in
        # the network namespace of the client, and by AF_NETLINK.
        IPAddressDeny = "any";
        # The empty entry takes back those of the package's unit.
        RestrictAddressFamilies = [
          ""
          "AF_NETLINK"
          "AF_UNIX"
        ];
      }
    else
      lib.optionalAttrs (lib.all isLocalUrl urls) {
        IPAddressAllow = "localhost";
        IPAddressDeny = "any";
      }
  )
)
