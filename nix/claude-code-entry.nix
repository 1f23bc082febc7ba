# The address of this service for Claude Code: an option, and an entry of mcpServers.
{ lib }:
{
  # The option for the URL.
  urlOption =
    listen:
    let
      scheme = if listen.tls == null then "http" else "https";
      # A client cannot connect to an unspecified address.
      address = lib.replaceStrings [ "0.0.0.0:" "[::]:" ] [ "127.0.0.1:" "[::1]:" ] listen.http;
    in
    lib.mkOption {
      type = lib.types.str;
      default = "${scheme}://${address}/";
      defaultText = lib.literalMD "the address in {option}`services.metamcp.settings.listen.http`";
      example = "https://mcp.example.org:12011/";
      description = ''
        The URL at which Claude Code connects to the service. If the service has
        a certificate, the host must be one of the names in it.
      '';
    };

  # An entry of mcpServers.
  entry =
    listen: url:
    {
      type = "http";
      inherit url;
    }
    # Claude Code expands this from its own environment.
    // lib.optionalAttrs (listen.token != null) {
      headers.Authorization = "Bearer \${METAMCP_TOKEN}";
    };
}
