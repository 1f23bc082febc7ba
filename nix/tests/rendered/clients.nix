# Tests of generated files: the firewall, metrics, and the configuration of Claude Code.
{ service, ... }:
{
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
  "metrics.openFirewall opens the port of the metrics only" = {
    module.services.metamcp.metrics = {
      enable = true;
      listenAddress = "::";
      port = 12119;
      openFirewall = true;
    };
    has."etc/metamcp/metamcp.toml" = [ ''metrics = "[::]:12119"'' ];
    has."etc/systemd/system/metamcp-metrics.socket" = [
      "FileDescriptorName=metrics"
      "ListenStream=[::]:12119"
      "Service=metamcp.service"
    ];
    has.${service} = [ "Sockets=metamcp-metrics.socket" ];
    openPorts = [ 12119 ];
  };
  "without metrics.enable, the file has no address for metrics" = {
    module.services.metamcp.metrics.listenAddress = "192.0.2.1";
    lacks."etc/metamcp/metamcp.toml" = [ "metrics = *" ];
    without = [ "etc/systemd/system/metamcp-metrics.socket" ];
    openPorts = [ ];
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
