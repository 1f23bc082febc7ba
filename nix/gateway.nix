# The service's own sandbox: what it can do without when no server is a child of
# it, because then nothing runs in this sandbox but metamcp itself.
# systemd/metamcp.service has the rest, and why it leaves these out.
{ lib }:
settings:
let
  servers = lib.attrValues settings.servers ++ lib.attrValues settings.provision.servers;
  hasChildren = lib.any (server: server.command != null) servers;

  # Every address that it connects to itself.
  urls =
    lib.filter (url: url != null) (map (server: server.url) servers)
    ++ lib.optional (settings.search.embedding != null) settings.search.embedding.url
    ++ lib.optional (settings.provision.registry != null) settings.provision.registry.url;
  isLocal = url: builtins.match "https?://(127[.][0-9.]+|\\[::1])([:/].*)?" url != null;
in
lib.optionalAttrs (!hasChildren) (
  {
    MemoryDenyWriteExecute = true;
    ProcSubset = "pid";
  }
  # Sockets that systemd listens on are not affected.
  // (
    if urls == [ ] then
      {
        IPAddressDeny = "any";
        PrivateNetwork = true;
        # The empty entry takes back those of the package's unit.
        RestrictAddressFamilies = [
          ""
          "AF_UNIX"
        ];
      }
    else
      lib.optionalAttrs (lib.all isLocal urls) {
        IPAddressAllow = "localhost";
        IPAddressDeny = "any";
      }
  )
)
