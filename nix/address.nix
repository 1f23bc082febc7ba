# What an address or a URL says of where it leads.
{ lib }:
let
  isLocal = host: builtins.match "localhost|127\\.[0-9.]+|\\[::1]" (lib.toLower host) != null;

  # The host and the port of a URL, null if it is none.
  read =
    url:
    let
      parts = builtins.match "(https?)://([^/?#@]*@)?(\\[[^]]*]|[^:/?#]*)(:([0-9]+))?([/?#].*)?" url;
      port = builtins.elemAt parts 4;
      usual = if builtins.head parts == "https" then "443" else "80";
    in
    if parts == null then
      null
    else
      {
        host = builtins.elemAt parts 2;
        port = if port == null then usual else port;
      };
in
{
  # Whether a URL leads to this host.
  isLocalUrl =
    url:
    let
      found = read url;
    in
    found != null && isLocal found.host;

  # services.metamcp.settings.listen.http.
  own =
    address:
    let
      parts = builtins.match "(.*):([0-9]+)" address;
      host = builtins.elemAt parts 0;
      isEverywhere = lib.elem host [
        "0.0.0.0"
        "[::]"
      ];
    in
    rec {
      port = builtins.elemAt parts 1;
      isLoopback = isLocal host;

      # Whether a URL is where metamcp itself listens.  Two addresses of loopback
      # with one port are taken for one: whoever reads them does, too.
      isOurs =
        url:
        let
          found = read url;
        in
        found != null
        && found.port == port
        && (found.host == host || isLocal found.host && (isLoopback || isEverywhere));
    };
}
