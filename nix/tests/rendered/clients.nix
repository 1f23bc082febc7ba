# Tests of generated files: the firewall, and the configuration of Claude Code.
_: {
  "the firewall is closed" = {
    module = { };
    openPorts = [ ];
  };
  "openFirewall opens the port in the firewall" = {
    module.services.metamcp = {
      openFirewall = true;
      settings.listen.http = "[::]:12111";
    };
    openPorts = [ 12111 ];
    refused = true;
  };
  "Claude Code gets the address of the service" = {
    module.services.metamcp = {
      claudeCode.enable = true;
      settings.listen.http = "127.0.0.1:12111";
    };
    has."etc/metamcp/mcp.json" = [
      ''{"mcpServers":{"metamcp":{"type":"http","url":"http://127.0.0.1:12111/"}}}''
    ];
  };
  "Claude Code gets the token header and a loopback address" = {
    module.services.metamcp = {
      claudeCode.enable = true;
      credentials.client-token = "/run/secrets/client-token";
      settings.listen = {
        http = "[::]:12111";
        tls = {
          certificate = "/etc/certificate.pem";
          key = "/run/secrets/key.pem";
        };
        token = "credential:client-token";
      };
    };
    has."etc/metamcp/mcp.json" = [
      ''{"mcpServers":{"metamcp":{"headers":{"Authorization":"Bearer ''${METAMCP_TOKEN}"},"type":"http","url":"https://[::1]:12111/"}}}''
    ];
  };
  "without claudeCode.enable there is no file for Claude Code" = {
    module = { };
    without = [ "etc/metamcp/mcp.json" ];
  };
}
