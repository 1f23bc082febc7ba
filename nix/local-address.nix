# Predicates for addresses and URLs: on this host, on loopback, metamcp's own.
{ lib }:
let
  isLocal = host: builtins.match "localhost|127\\.[0-9.]+|\\[::1]" (lib.toLower host) != null;

  # The host and port of a URL; null if the text is not a URL.
  parseUrl =
    url:
    let
      parts = builtins.match "(https?)://([^/?#@]*@)?(\\[[^]]*]|[^:/?#]*)(:([0-9]+))?([/?#].*)?" url;
      port = builtins.elemAt parts 4;
      defaultPort = if builtins.head parts == "https" then "443" else "80";
    in
    if parts == null then
      null
    else
      {
        host = builtins.elemAt parts 2;
        port = if port == null then defaultPort else port;
      };
in
{
  # True if the host of a URL is this host.
  isLocalUrl =
    url:
    let
      parsed = parseUrl url;
    in
    parsed != null && isLocal parsed.host;

  # The parts of services.metamcp.settings.listen.http, and a predicate for it.
  listenAddress =
    address:
    let
      parts = builtins.match "(.*):([0-9]+)" address;
      host = builtins.elemAt parts 0;
      isUnspecified = lib.elem host [
        "0.0.0.0"
        "[::]"
      ];
    in
    rec {
      port = builtins.elemAt parts 1;
      isLoopback = isLocal host;

      # True if a URL is the address of metamcp itself. All loopback addresses with
      # the same port count as equal.
      isOwnUrl =
        url:
        let
          parsed = parseUrl url;
        in
        parsed != null
        && parsed.port == port
        && (parsed.host == host || isLocal parsed.host && (isLoopback || isUnspecified));
    };
}
