# What Claude Code has to be told of this service.
{ lib }:
{
  # The option that says where to connect to.
  urlOption =
    listen:
    let
      scheme = if listen.tls == null then "http" else "https";
      # One that stands for all is none.
      address = lib.replaceStrings [ "0.0.0.0:" "[::]:" ] [ "127.0.0.1:" "[::1]:" ] listen.http;
    in
    lib.mkOption {
      type = lib.types.str;
      default = "${scheme}://${address}/";
      defaultText = lib.literalMD "the address in {option}`services.metamcp.settings.listen.http`";
      example = "https://mcp.example.org:12011/";
      description = ''
        Where Claude Code finds the service. With a certificate it must be one
        of the names in that.
      '';
    };

  # An entry of mcpServers.
  entry =
    listen: url:
    {
      type = "http";
      inherit url;
    }
    # Claude Code puts its own environment variable in.
    // lib.optionalAttrs (listen.token != null) {
      headers.Authorization = "Bearer \${METAMCP_TOKEN}";
    };
}
