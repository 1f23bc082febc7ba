# What the module makes of a configuration: what clients reach, and what they are told.
_: {
  "the firewall is closed" = {
    module = { };
    openPorts = [ ];
  };
  "the firewall is opened on demand" = {
    module.services.metamcp = {
      openFirewall = true;
      settings.listen.http = "[::]:12111";
    };
    openPorts = [ 12111 ];
    refused = true;
  };
  "Claude Code is told where the service is" = {
    module.services.metamcp = {
      claudeCode.enable = true;
      settings.listen.http = "127.0.0.1:12111";
    };
    has."etc/metamcp/mcp.json" = [
      ''{"mcpServers":{"metamcp":{"type":"http","url":"http://127.0.0.1:12111/"}}}''
    ];
  };
  "Claude Code is told to bring the token, and of an address that it can connect to" = {
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
  "Claude Code is told nothing unless that is asked for" = {
    module = { };
    without = [ "etc/metamcp/mcp.json" ];
  };
}
