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

  # True if a request leaves this host. The login of a server on this host may be
  # elsewhere: then `auth` is a table. A proxy on this host connects to all others.
  leavesHost =
    {
      auth ? null,
      proxy ? null,
      url,
      ...
    }:
    let
      # The proxy of the service is not for this host.
      inherited = if isLocalUrl url then "none" else settings.service.proxy;
      ownProxy = if proxy == null then inherited else proxy;
    in
    if lib.hasPrefix "http://" ownProxy then
      !isLocalUrl ownProxy
    else
      !isLocalUrl url || builtins.isAttrs auth;

  # Everything that the service itself connects to.
  endpoints =
    lib.filter (server: server.url != null) servers
    ++ map (endpoint: { inherit (endpoint) url; }) (
      lib.filter (endpoint: endpoint != null) [
        settings.provision.registry
        settings.search.embedding
      ]
    );
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
    if endpoints == [ ] then
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
      # IPAddressAllow= takes no names, so that it cannot narrow what is beyond this host.
      lib.optionalAttrs (!lib.any leavesHost endpoints) {
        IPAddressAllow = "localhost";
        IPAddressDeny = "any";
      }
  )
)
