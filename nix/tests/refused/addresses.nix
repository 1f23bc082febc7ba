# Cases of assertions and warnings: addresses.
{
  both,
  secured,
  settings,
  ...
}:
{
  "an address that the network can reach" = {
    kind = "unprotected-address";
    refused = settings { listen.http = "[::]:12011"; };
    message = "services.metamcp.settings.listen.http is [::]:12011, which is not a loopback address, so that metamcp would serve everyone on the network: set services.metamcp.settings.listen.tls";
    accepted = settings { listen.http = "[::1]:12011"; };
  };
  "an address of the network with TLS and without a token" = {
    kind = "unprotected-address";
    refused =
      { lib, ... }:
      both [
        secured
        (settings { listen.token = lib.mkForce null; })
      ];
    message = "set services.metamcp.settings.listen.tls and services.metamcp.settings.listen.token, or listen on 127.0.0.1.";
    accepted = secured;
  };
  "an address of the network with a token and without TLS" = {
    kind = "unprotected-address";
    refused =
      { lib, ... }:
      both [
        secured
        (settings { listen.tls = lib.mkForce null; })
      ];
    message = "services.metamcp.settings.listen.http is 192.0.2.1:12011, which is not a loopback address";
    accepted = secured;
  };
  "a loopback port in the firewall" = {
    kind = "firewall-of-loopback";
    refused.services.metamcp.openFirewall = true;
    message = "services.metamcp.openFirewall opens the port of 127.0.0.1:12011, but only this host can reach that address: remove it";
    accepted = both [
      secured
      { services.metamcp.openFirewall = true; }
    ];
  };
  "the loopback port of the metrics in the firewall" = {
    kind = "metrics-firewall-of-loopback";
    refused.services.metamcp.metrics = {
      enable = true;
      openFirewall = true;
    };
    message = "services.metamcp.metrics.openFirewall opens the port of 127.0.0.1:12019, but only this host can reach that address: remove it";
    accepted.services.metamcp.metrics = {
      enable = true;
      listenAddress = "192.0.2.1";
      openFirewall = true;
    };
  };
  "a root view of a server that is not declared" = {
    kind = "root-view";
    refused = settings { listen.root = "passthrough:absent"; };
    message = "listen.root is passthrough:absent, but this server does not exist: declare it";
    accepted = settings { listen.root = "passthrough:time"; };
  };
}
