# Configurations that must not evaluate, each with a part of what the operator
# reads: a change to nix/tests/example.nix, and the message.
{
  "a server with both a command and a url" = {
    module.services.metamcp.settings.servers.cluster.command = "/bin/true";
    message = "servers.cluster needs one of command, url and socket: set `command`";
  };
  "a server with neither a command nor a url" = {
    module.services.metamcp.settings.servers.nothing = { };
    message = "servers.nothing needs one of command, url and socket: set `command`";
  };
  "a server with both a url and a socket" = {
    module.services.metamcp.settings.servers.cluster.socket = "/run/cluster.sock";
    message = "servers.cluster needs one of command, url and socket: set `command`";
  };
  "a server name with two underscores in a row" = {
    module.services.metamcp.settings.servers.a__b.command = "/bin/true";
    message = "servers.a__b is not a valid name: use 1 to 40 letters";
  };
  "a server name that ends in a dash" = {
    module.services.metamcp.settings.servers.clock-.command = "/bin/true";
    message = "servers.clock- is not a valid name: use 1 to 40 letters";
  };
  "a server name of 41 characters" = {
    module.services.metamcp.settings.servers.a2345678901234567890123456789012345678901.command =
      "/bin/true";
    message = "is not a valid name: use 1 to 40 letters";
  };
  "a reference to a credential that is not declared" = {
    module.services.metamcp.settings.servers.shell.env.KEY = "credential:forgotten";
    message = "refers to the credential forgotten, which does not exist: set services.metamcp.credentials.forgotten";
  };
  "a certificate in a credential that is not declared" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.listen.tls.certificate = lib.mkForce "credential:forgotten";
      };
    message = "services.metamcp.settings.listen.tls.certificate refers to the credential forgotten, which does not exist";
  };
  "a key of the service in the Nix store" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.listen.tls.key =
          lib.mkForce "${builtins.storeDir}/00000000000000000000000000000000-key.pem";
      };
    message = "listen.tls.key is in the Nix store, where every user can read it";
  };
  "a relative path of a certificate" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.listen.tls.certificate = lib.mkForce "chain.pem";
      };
    message = "certificate' is not of type";
  };
  "a session key that is not declared" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.listen.session_key = lib.mkForce "credential:lost";
      };
    message = "listen.session_key refers to the credential lost, which does not exist: set services.metamcp.credentials.lost";
  };
  "a session key in the configuration itself" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.listen.session_key = lib.mkForce "0123456789abcdef0123456789abcdef";
      };
    message = "session_key' is not of type";
  };
  "a secret given as a Nix path" = {
    module.services.metamcp.credentials.leaked = ./example.nix;
    message = "credentials.leaked would put the secret into the Nix store";
  };
  "a secret in the Nix store" = {
    module.services.metamcp.credentials.leaked =
      "${builtins.storeDir}/00000000000000000000000000000000-secret";
    message = "credentials.leaked would put the secret into the Nix store";
  };
  "an address that the network can reach" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.listen.http = lib.mkForce "[::]:12011";
      };
    message = "listen.http is [::]:12011, which is not a loopback address, so that everybody on the network is served: set services.metamcp.settings.listen.tls";
  };
  "a root view of a server that is not declared" = {
    module.services.metamcp.settings.listen.root = "passthrough:nobody";
    message = "listen.root is passthrough:nobody, but there is no such server: declare it";
  };
  "a duration without a unit" = {
    module.services.metamcp.settings.service.request_timeout = "60";
    message = "request_timeout' is not of type `duration: a whole number and its unit";
  };
  "an unknown way to start" = {
    module.services.metamcp.settings.servers.clock.start = "later";
    message = "start' is not of type `one of \"lazy\", \"eager\", \"prewarm\"'";
  };
  "a server that is declared and may be provisioned" = {
    module.services.metamcp.settings.servers.echo.command = "/bin/true";
    message = "provision.servers.echo is declared in services.metamcp.settings.servers too";
  };
  "a server to be provisioned that cannot be reached" = {
    module.services.metamcp.settings.provision.servers.nothing.description = "Nothing.";
    message = "provision.servers.nothing needs one of command, url and socket: set `command`";
  };
  "a server to be provisioned without a description" = {
    module.services.metamcp.settings.provision.servers.mute.command = "/bin/true";
    message = "provision.servers.mute.description'";
  };
  "a credential of such a server that is not declared" = {
    module.services.metamcp.settings.provision.servers.echo.env.KEY = "credential:forgotten";
    message = "provision.servers.echo.env.KEY refers to the credential forgotten, which does not exist";
  };
  "a rule that trusts everybody" = {
    module.services.metamcp.settings.provision.trusted = [ "*" ];
    message = "is not of type `namespace, or all below one";
  };
  "a confidence above certainty" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.provision.min_confidence = lib.mkForce 1.5;
      };
    message = "min_confidence' is not of type";
  };
  "a key of the embedding endpoint in the configuration itself" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.search.embedding.api_key = lib.mkForce "sk-0123456789";
      };
    message = "api_key' is not of type";
  };
  "no set of meta-tools" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.tools.sets = lib.mkForce [ ];
      };
    message = "sets' is not of type";
  };
  "a relative cache directory" = {
    module =
      { lib, ... }:
      {
        services.metamcp.settings.catalog.cache = lib.mkForce "cache";
      };
    message = "cache' is not of type";
  };
  "an option that does not exist" = {
    module.services.metamcp.port = 12011;
    message = "`services.metamcp.port' does not exist";
  };
}
