# The [Service] directives that the module adds to systemd/metamcp.service.
{ lib }:
{
  group,
  settings,
  user,
}:
let
  inherit (import ./local-address.nix { inherit lib; }) isLocalUrl;

  identity =
    lib.optionalAttrs (user != null) (import ./static-user.nix user // { DynamicUser = false; })
    // lib.optionalAttrs (group != null) { Group = group; };

  servers = lib.attrValues settings.servers ++ lib.attrValues settings.provision.servers;
  hasChildren = lib.any (server: server.command != null) servers;

  # Every URL that the service itself connects to.
  urls =
    lib.filter (url: url != null) (map (server: server.url) servers)
    ++ lib.optional (settings.search.embedding != null) settings.search.embedding.url
    ++ lib.optional (settings.provision.registry != null) settings.provision.registry.url;
in
identity
# Without a child, only metamcp runs in this sandbox. It needs none of the permissions
# that systemd/metamcp.service leaves open for children.
// lib.optionalAttrs (!hasChildren) (
  {
    MemoryDenyWriteExecute = true;
    ProcSubset = "pid";
  }
  # These directives do not affect the sockets that systemd listens on.
  // (
    if urls == [ ] then
      {
        # Not PrivateNetwork=: the kernel reports the user of a connection only in
        # the network namespace of the client, over AF_NETLINK.
        IPAddressDeny = "any";
        # The empty entry removes the families of the package's unit.
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
