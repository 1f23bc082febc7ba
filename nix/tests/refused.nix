# What is refused or warned about, by name: a configuration of that kind, a part
# of what the operator reads, and what to write instead, of which nothing is said.
#
# `kind` is one of nix/assertions.nix, each of which has a case in nix/tests/refused,
# or "type" where the option itself refuses the value.  All are on top of `base`.
let
  server = name: value: { services.metamcp.servers.${name} = value; };
  exact = name: value: { services.metamcp.settings.servers.${name} = value; };
  provisioned = name: value: {
    services.metamcp.settings.provision.servers.${name} = {
      description = "Tells the time.";
    }
    // value;
  };
  settings = value: { services.metamcp.settings = value; };
  both = modules: { imports = modules; };
  storeFile = "${builtins.storeDir}/00000000000000000000000000000000-secret";

  # What an address of the network needs.
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

  # A name of so many letters.
  long = length: builtins.substring 0 length "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";

  # What the cases are written with.
  words = {
    inherit
      both
      exact
      long
      provisioned
      secured
      server
      settings
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

  cases = import ./cases.nix ./refused words;
}
