# The cases for assertions and warnings, by name. Each has a configuration that causes a
# message (`refused`), a part of this message, and a corrected configuration that causes
# no message (`accepted`).
#
# `kind` is one of the kinds in nix/assertions.nix, each of which has a case in
# nix/tests/refused, or "type" if the type of the option rejects the value. The module
# `base` is part of every configuration.
let
  server = name: value: { services.metamcp.servers.${name} = value; };
  settingsServer = name: value: { services.metamcp.settings.servers.${name} = value; };
  provisioned = name: value: {
    services.metamcp.settings.provision.servers.${name} = {
      description = "Tells the time.";
    }
    // value;
  };
  settings = value: { services.metamcp.settings = value; };
  both = modules: { imports = modules; };
  storeFile = "${builtins.storeDir}/00000000000000000000000000000000-secret";

  # A network address with TLS and a token.
  secured = both [
    (settings {
      listen = {
        http = "192.0.2.1:12011";
        tls = {
          certificate = "/etc/certificate.pem";
          key = "/etc/key.pem";
        };
        token = "credential:client-token";
      };
    })
    { services.metamcp.credentials.client-token = "/run/secrets/client-token"; }
  ];

  # A name with `length` letters.
  long = length: builtins.substring 0 length "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";

  # The functions and values that the cases use.
  helpers = {
    inherit
      both
      long
      provisioned
      secured
      server
      settings
      settingsServer
      storeFile
      ;
  };
in
{
  base = {
    services.metamcp = {
      enable = true;
      servers.time.command = "time-mcp";
    };
  };

  cases = import ./merge-cases.nix ./refused helpers;
}
