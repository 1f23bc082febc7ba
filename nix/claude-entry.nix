# What Claude Code has to be told of this service.
{ lib }:
{
  # Where to connect to: an address that stands for all is not one.
  url =
    listen:
    let
      scheme = if listen.tls == null then "http" else "https";
      address = lib.replaceStrings [ "0.0.0.0:" "[::]:" ] [ "127.0.0.1:" "[::1]:" ] listen.http;
    in
    "${scheme}://${address}/";

  # An entry of mcpServers.
  entry =
    listen: url:
    {
      type = "http";
      inherit url;
    }
    # Claude Code puts its own environment variable in.
    // lib.optionalAttrs (listen.token or null != null) {
      headers.Authorization = "Bearer \${METAMCP_TOKEN}";
    };
}
