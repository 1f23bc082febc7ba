# What is refused or warned about, by name: a configuration of that kind, a part
# of what the operator reads, and what to write instead, of which nothing is said.
#
# `kind` is one of nix/assertions.nix, each of which is here, or "type" where the
# option itself refuses the value.  All are on top of `base`.
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
in
{
  base = {
    services.metamcp = {
      enable = true;
      servers.time.command = "time-mcp";
    };
  };

  cases = {
    # ---------------------------------------------------------------- addresses
    "an address that the network can reach" = {
      kind = "address-in-the-open";
      refused = settings { listen.http = "[::]:12011"; };
      message = "services.metamcp.settings.listen.http is [::]:12011, which is not a loopback address, so that everybody on the network is served: set services.metamcp.settings.listen.tls";
      accepted = settings { listen.http = "[::1]:12011"; };
    };
    "an address of the network with TLS and without a token" = {
      kind = "address-in-the-open";
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
      kind = "address-in-the-open";
      refused =
        { lib, ... }:
        both [
          secured
          (settings { listen.tls = lib.mkForce null; })
        ];
      message = "services.metamcp.settings.listen.http is 192.0.2.1:12011, which is not a loopback address";
      accepted = secured;
    };
    "a port of loopback that the firewall is to open" = {
      kind = "firewall-of-loopback";
      refused.services.metamcp.openFirewall = true;
      message = "services.metamcp.openFirewall opens the port of 127.0.0.1:12011, which only this host reaches: remove it";
      accepted = both [
        secured
        { services.metamcp.openFirewall = true; }
      ];
    };
    "a root view of a server that is not declared" = {
      kind = "root-view";
      refused = settings { listen.root = "passthrough:nobody"; };
      message = "listen.root is passthrough:nobody, but there is no such server: declare it";
      accepted = settings { listen.root = "passthrough:time"; };
    };

    # -------------------------------------------------------------------- names
    "a server name with two underscores in a row" = {
      kind = "name";
      refused = server "a__b" { command = "a-mcp"; };
      message = "services.metamcp.servers.a__b is not a valid name: use 1 to 40 letters";
      accepted = server "a_b" { command = "a-mcp"; };
    };
    "a server name that ends in a dash" = {
      kind = "name";
      refused = exact "clock-" { command = "a-mcp"; };
      message = "services.metamcp.settings.servers.clock- is not a valid name: use 1 to 40 letters";
      accepted = exact "clock-2" { command = "a-mcp"; };
    };
    "a server name of 41 characters" = {
      kind = "name";
      refused = provisioned (long 41) { command = "a-mcp"; };
      message = "services.metamcp.settings.provision.servers.${long 41} is not a valid name: use 1 to 40 letters";
      accepted = both [
        (provisioned (long 40) { command = "a-mcp"; })
        (settings { listen.root = "meta"; })
      ];
    };
    "a name that leaves tools no room" = {
      kind = "name-long";
      refused = server (long 25) { command = "a-mcp"; };
      message = "services.metamcp.servers.${long 25} has a name of 25 characters, which leaves 23 of the 64 that clients allow";
      accepted = server (long 24) { command = "a-mcp"; };
    };
    "names that differ in nothing but capitals" = {
      kind = "names-alike";
      refused = server "Time" { command = "other-mcp"; };
      message = "services.metamcp.servers.Time and services.metamcp.servers.time differ in nothing but capitals, - and _";
      accepted = server "times" { command = "other-mcp"; };
    };
    "names that differ in nothing but a dash" = {
      kind = "names-alike";
      refused = both [
        (server "web-search" { command = "a-mcp"; })
        (provisioned "web_search" { command = "b-mcp"; })
      ];
      message = "services.metamcp.servers.web-search and services.metamcp.settings.provision.servers.web_search differ in nothing";
      accepted = both [
        (server "web-search" { command = "a-mcp"; })
        (provisioned "websearch" { command = "b-mcp"; })
      ];
    };

    # --------------------------------------------------------- ways to a server
    "a server with both a command and a url" = {
      kind = "way";
      refused = server "time" { url = "http://127.0.0.1:9000/mcp"; };
      message = "services.metamcp.servers.time needs one of command, url and socket: set `package` or `command` for a program";
      accepted = server "clock" { url = "http://127.0.0.1:9000/mcp"; };
    };
    "a server with neither a command nor a url" = {
      kind = "way";
      refused = server "nothing" { };
      message = "services.metamcp.servers.nothing needs one of command, url and socket: set `package` or `command`";
      accepted =
        { pkgs, ... }:
        {
          services.metamcp.servers.nothing.package = pkgs.bash;
        };
    };
    "a server with both a url and a socket" = {
      kind = "way";
      refused = exact "cluster" {
        url = "http://127.0.0.1:9000/mcp";
        socket = "/run/cluster.sock";
      };
      message = "services.metamcp.settings.servers.cluster needs one of command, url and socket: set `command`";
      accepted = exact "cluster" { socket = "/run/cluster.sock"; };
    };
    "a server to be provisioned that cannot be reached" = {
      kind = "way";
      refused = provisioned "nothing" { };
      message = "services.metamcp.settings.provision.servers.nothing needs one of command, url and socket: set `command`";
      accepted = provisioned "nothing" { command = "a-mcp"; };
    };
    "a server that its settings make reachable in another way too" = {
      kind = "way";
      refused = exact "time" { url = "http://127.0.0.1:9000/mcp"; };
      message = "services.metamcp.settings.servers.time makes services.metamcp.servers.time reachable in another way too: remove one";
      accepted = exact "time" { retry = "never"; };
    };
    "a server that is declared and may be provisioned" = {
      kind = "provisioned-and-there";
      refused = provisioned "time" { command = "other-mcp"; };
      message = "services.metamcp.settings.provision.servers.time is declared in services.metamcp.servers too";
      accepted = provisioned "hours" { command = "other-mcp"; };
    };
    "a server that is declared twice" = {
      kind = "twice";
      refused = provisioned "hours" { command = "time-mcp"; };
      message = "services.metamcp.servers.time and services.metamcp.settings.provision.servers.hours are the same server, which so is started and asked once for each: keep one";
      accepted = provisioned "hours" {
        command = "time-mcp";
        args = [ "--utc" ];
      };
    };
    "a group of operators that does not exist" = {
      kind = "group-unknown";
      refused = settings { listen.control_group = "operators"; };
      message = "services.metamcp.settings.listen.control_group is operators, and there is no such group: declare users.groups.operators";
      accepted = both [
        { users.groups.operators = { }; }
        (settings { listen.control_group = "operators"; })
      ];
    };
    "a unit that is declared twice" = {
      kind = "twice";
      refused = both [
        (server "git-a" { command = "git-mcp"; })
        (server "git-b" { command = "git-mcp"; })
      ];
      message = "services.metamcp.servers.git-a and services.metamcp.servers.git-b are the same server";
      # With another user's rights it is another server.
      accepted = both [
        { users.users.alice.isNormalUser = true; }
        (server "git-a" {
          command = "git-mcp";
          sandbox.user = "alice";
        })
        (server "git-b" { command = "git-mcp"; })
      ];
    };
    "a unit that is declared twice and keeps nothing" = {
      kind = "twice";
      refused = both [
        (server "memory-a" {
          command = "memory-mcp";
          sandbox.preset = "strict";
        })
        (server "memory-b" {
          command = "memory-mcp";
          sandbox.preset = "strict";
        })
      ];
      message = "services.metamcp.servers.memory-a and services.metamcp.servers.memory-b are the same server";
      # With a state each they are two.
      accepted = both [
        (server "memory-a" {
          command = "memory-mcp";
          sandbox.preset = "no-network";
        })
        (server "memory-b" {
          command = "memory-mcp";
          sandbox.preset = "no-network";
        })
      ];
    };
    "a url that is declared twice" = {
      kind = "twice";
      refused = both [
        (server "a" { url = "http://127.0.0.1:9000/mcp"; })
        (exact "b" { url = "http://127.0.0.1:9000/mcp"; })
      ];
      message = "services.metamcp.servers.a and services.metamcp.settings.servers.b are the same server";
      # With another user's key it is another server.
      accepted = both [
        (server "a" {
          url = "http://127.0.0.1:9000/mcp";
          credentials.Authorization = "/run/secrets/a";
        })
        (server "b" {
          url = "http://127.0.0.1:9000/mcp";
          credentials.Authorization = "/run/secrets/b";
        })
      ];
    };

    # ---------------------------------------------------------------- ourselves
    "a server at metamcp's own address" = {
      kind = "own-url";
      refused = server "loop" { url = "http://localhost:12011/mcp"; };
      message = "services.metamcp.servers.loop.url is http://localhost:12011/mcp, where metamcp itself listens: give the address of the server, or another port";
      accepted = server "loop" { url = "http://localhost:12012/mcp"; };
    };
    "an upstream at the port of metamcp" = {
      kind = "own-url";
      refused.services.metamcp.upstream.url = "http://127.0.0.1:12011/mcp";
      message = "services.metamcp.upstream.url is http://127.0.0.1:12011/mcp, where metamcp itself listens: give the address of the server, or another port to services.metamcp.settings.listen.http";
      accepted = both [
        { services.metamcp.upstream.url = "http://127.0.0.1:12011/mcp"; }
        (settings { listen.http = "127.0.0.1:12021"; })
      ];
    };
    "a server at the usual port of an address that metamcp has" = {
      kind = "own-url";
      refused = both [
        (server "loop" { url = "http://127.0.0.2/mcp"; })
        (settings { listen.http = "127.0.0.1:80"; })
      ];
      message = "services.metamcp.servers.loop.url is http://127.0.0.2/mcp, where metamcp itself listens";
      accepted = both [
        (server "loop" { url = "http://192.0.2.1/mcp"; })
        (settings { listen.http = "127.0.0.1:80"; })
      ];
    };
    "an upstream that is the unit of metamcp" = {
      kind = "own-unit";
      refused.services.metamcp.upstream = {
        url = "http://127.0.0.1:12009/mcp";
        unit = "metamcp.service";
      };
      message = "services.metamcp.upstream.unit is metamcp's own unit: give that of the upstream";
      accepted.services.metamcp.upstream = {
        url = "http://127.0.0.1:12009/mcp";
        unit = "mcp-proxy.service";
      };
    };
    "a server that is the bridge to metamcp" = {
      kind = "own-command";
      refused = server "bridge" {
        command = "/run/current-system/sw/bin/metamcp";
        args = [ "stdio" ];
      };
      message = "services.metamcp.servers.bridge.command is metamcp's own bridge to this service, which would call itself: remove the server";
      accepted = server "bridge" {
        command = "/run/current-system/sw/bin/metamcp";
        args = [
          "stdio"
          "--socket"
          "/run/other/control.sock"
        ];
      };
    };
    "a server at metamcp's own control socket" = {
      kind = "own-socket";
      refused = exact "control" { socket = "/run/metamcp/control.sock"; };
      message = "services.metamcp.settings.servers.control.socket is metamcp's own control socket: give the socket of the server's unit";
      accepted = exact "control" { socket = "/run/metamcp-servers/control.sock"; };
    };

    # ------------------------------------------------------------------ secrets
    "a credential of a server that is the unit of somebody else" = {
      kind = "without-effect";
      refused = server "notes" {
        socket = "/run/notes.sock";
        credentials.TOKEN = "/run/secrets/notes";
      };
      message = "services.metamcp.servers.notes.credentials has no effect, because the server is a unit that metamcp only connects to: remove it";
      accepted = server "notes" { socket = "/run/notes.sock"; };
    };
    "a reference to a credential that is not declared" = {
      kind = "credential-unknown";
      refused = exact "shell" {
        command = "a-mcp";
        env.KEY = "credential:forgotten";
      };
      message = "services.metamcp.settings.servers.shell.env.KEY refers to the credential forgotten, which does not exist: set services.metamcp.credentials.forgotten";
      accepted = both [
        (exact "shell" {
          command = "a-mcp";
          env.KEY = "credential:forgotten";
        })
        { services.metamcp.credentials.forgotten = "/run/secrets/forgotten"; }
      ];
    };
    "a credential of a server to be provisioned that is not declared" = {
      kind = "credential-unknown";
      refused = provisioned "echo" {
        command = "a-mcp";
        env.KEY = "credential:forgotten";
      };
      message = "services.metamcp.settings.provision.servers.echo.env.KEY refers to the credential forgotten, which does not exist";
      accepted = provisioned "echo" {
        command = "a-mcp";
        env.KEY = "env:KEY";
      };
    };
    "a certificate in a credential that is not declared" = {
      kind = "credential-unknown";
      refused = settings {
        listen.tls = {
          certificate = "credential:forgotten";
          key = "/etc/key.pem";
        };
      };
      message = "services.metamcp.settings.listen.tls.certificate refers to the credential forgotten, which does not exist";
      accepted = settings {
        listen.tls = {
          certificate = "/etc/certificate.pem";
          key = "/etc/key.pem";
        };
      };
    };
    "a session key that is not declared" = {
      kind = "credential-unknown";
      refused = settings { listen.session_key = "credential:lost"; };
      message = "services.metamcp.settings.listen.session_key refers to the credential lost, which does not exist: set services.metamcp.credentials.lost";
      accepted = both [
        (settings { listen.session_key = "credential:lost"; })
        { services.metamcp.credentials.lost = "/run/secrets/session-key"; }
      ];
    };
    "a token of clients that is not declared" = {
      kind = "credential-unknown";
      refused = settings { listen.token = "credential:lost"; };
      message = "services.metamcp.settings.listen.token refers to the credential lost, which does not exist: set services.metamcp.credentials.lost";
      accepted = both [
        (settings { listen.token = "credential:lost"; })
        { services.metamcp.credentials.lost = "/run/secrets/client-token"; }
      ];
    };
    "a key of the embedding endpoint that is not declared" = {
      kind = "credential-unknown";
      refused = settings {
        search.embedding = {
          url = "http://127.0.0.1:8080/v1/embeddings";
          model = "small";
          api_key = "credential:lost";
        };
      };
      message = "services.metamcp.settings.search.embedding.api_key refers to the credential lost, which does not exist";
      accepted = settings {
        search.embedding = {
          url = "http://127.0.0.1:8080/v1/embeddings";
          model = "small";
        };
      };
    };
    "a key of the service in the Nix store" = {
      kind = "tls-key-in-the-store";
      refused = settings {
        listen.tls = {
          certificate = "/etc/certificate.pem";
          key = storeFile;
        };
      };
      message = "services.metamcp.settings.listen.tls.key is in the Nix store, where every user can read it";
      accepted = both [
        (settings {
          listen.tls = {
            certificate = storeFile;
            key = "credential:tls-key";
          };
        })
        { services.metamcp.credentials.tls-key = "/run/secrets/tls-key"; }
      ];
    };
    "a secret given as a Nix path" = {
      kind = "credential-in-the-store";
      refused.services.metamcp.credentials.leaked = ./example.nix;
      message = "services.metamcp.credentials.leaked would put the secret into the Nix store";
      accepted.services.metamcp.credentials.leaked = "/run/secrets/leaked";
    };
    "a secret of a server in the Nix store" = {
      kind = "credential-in-the-store";
      refused = server "time" { credentials.API_TOKEN = storeFile; };
      message = "services.metamcp.servers.time.credentials.API_TOKEN would put the secret into the Nix store";
      accepted = server "time" { credentials.API_TOKEN = "/run/secrets/token"; };
    };
    "a secret of an endpoint in the Nix store" = {
      kind = "credential-in-the-store";
      refused = server "web" {
        url = "http://127.0.0.1:9000/mcp";
        credentials.Authorization = storeFile;
      };
      message = "services.metamcp.servers.web.credentials.Authorization would put the secret into the Nix store";
      accepted = server "web" {
        url = "http://127.0.0.1:9000/mcp";
        credentials.Authorization = "/run/secrets/authorization";
      };
    };
    "a key of the upstream in the Nix store" = {
      kind = "credential-in-the-store";
      refused.services.metamcp.upstream = {
        url = "http://127.0.0.1:12009/mcp";
        apiKeyFile = storeFile;
      };
      message = "services.metamcp.upstream.apiKeyFile would put the secret into the Nix store";
      accepted.services.metamcp.upstream = {
        url = "http://127.0.0.1:12009/mcp";
        apiKeyFile = "/run/secrets/key";
      };
    };
    "a secret that is also a value" = {
      kind = "credential-and-value";
      refused = server "time" {
        credentials.API_TOKEN = "/run/secrets/token";
        env.API_TOKEN = "env:API_TOKEN";
        isolation = "spawn";
      };
      message = "services.metamcp.servers.time.credentials.API_TOKEN is also set as a value of its own: leave one";
      accepted = server "time" { credentials.API_TOKEN = "/run/secrets/token"; };
    };
    "a secret that is called as no variable can be" = {
      kind = "variable";
      refused = server "time" { credentials.api-token = "/run/secrets/token"; };
      message = "services.metamcp.servers.time is to get an environment variable api-token, which is no name of one: use letters";
      # A header can.
      accepted = server "web" {
        url = "http://127.0.0.1:9000/mcp";
        credentials.api-token = "/run/secrets/token";
      };
    };
    "a variable of the service in a unit of its own" = {
      kind = "variable-of-the-service";
      refused = server "time" { env.PLACE = "env:PLACE"; };
      message = "services.metamcp.servers.time.env.PLACE refers to a variable of metamcp.service, which the unit of the server does not have: put the value";
      accepted = server "time" {
        env.PLACE = "env:PLACE";
        isolation = "spawn";
      };
    };
    "a secret in a variable" = {
      kind = "secret-in-the-open";
      refused = exact "shell" {
        command = "a-mcp";
        env.API_KEY = "hunter2";
      };
      message = "services.metamcp.settings.servers.shell.env.API_KEY looks like a secret, and every user can read it in the Nix store: put it into a file, name that in services.metamcp.credentials";
      accepted = exact "shell" {
        command = "a-mcp";
        env.API_KEY_FILE = "/run/secrets/key";
      };
    };
    "a secret in a header" = {
      kind = "secret-in-the-open";
      refused = server "web" {
        url = "http://127.0.0.1:9000/mcp";
        headers.Authorization = "Bearer abc";
      };
      message = "services.metamcp.servers.web.headers.Authorization looks like a secret, and every user can read it in the Nix store: put it into a file, and name that in services.metamcp.servers.web.credentials";
      accepted = server "web" {
        url = "http://127.0.0.1:9000/mcp";
        headers.X-Team = "search";
      };
    };
    "a token in a variable that is not called so" = {
      kind = "secret-in-the-open";
      refused = server "time" { env.LOGIN = "ghp_0123456789abcdef"; };
      message = "services.metamcp.servers.time.env.LOGIN looks like a secret";
      accepted = server "time" { env.LOGIN = "alice"; };
    };
    "a secret in an argument" = {
      kind = "secret-argument";
      refused = server "time" { args = [ "--token=hunter2" ]; };
      message = "services.metamcp.servers.time.args has what looks like a secret, and every user can read it in the Nix store and among the processes: give it by an environment variable";
      accepted = server "time" { args = [ "--token-file=/run/secrets/token" ]; };
    };
    "a secret in the argument after its name" = {
      kind = "secret-argument";
      refused = provisioned "web" {
        command = "web-mcp";
        args = [
          "--api-key"
          "hunter2"
        ];
      };
      message = "services.metamcp.settings.provision.servers.web.args has what looks like a secret";
      accepted = provisioned "web" {
        command = "web-mcp";
        args = [
          "--keywords"
          "hunter2"
        ];
      };
    };

    "a secret in a url" = {
      kind = "secret-url";
      refused = server "web" { url = "http://127.0.0.1:9000/mcp?api_key=hunter2"; };
      message = "services.metamcp.servers.web.url has what looks like a secret, and every user can read it in the Nix store: give it by a header, from a file in services.metamcp.servers.web.credentials";
      accepted = server "web" {
        url = "http://127.0.0.1:9000/mcp?toolset=search";
        credentials.X-API-Key = "/run/secrets/key";
      };
    };

    # ----------------------------------------------------------------- programs
    "a package that npx fetches in any version" = {
      kind = "fetched-unpinned";
      refused = exact "files" {
        command = "npx";
        args = [
          "-y"
          "@modelcontextprotocol/server-filesystem"
        ];
      };
      message = "services.metamcp.settings.servers.files.command fetches @modelcontextprotocol/server-filesystem in whatever version is the newest, which makes it slow to start and different from one day to the next: say the version, as in \"@modelcontextprotocol/server-filesystem@1.2.3\"";
      accepted = exact "files" {
        command = "npx";
        args = [
          "-y"
          "@modelcontextprotocol/server-filesystem@2026.1.14"
        ];
      };
    };
    "a package that npx fetches in its newest version" = {
      kind = "fetched-unpinned";
      refused = exact "files" {
        command = "npx";
        args = [ "@modelcontextprotocol/server-filesystem@latest" ];
      };
      message = "say the version, as in \"@modelcontextprotocol/server-filesystem@1.2.3\"";
      accepted = exact "files" {
        command = "npx";
        args = [ "@modelcontextprotocol/server-filesystem@2026.1.14" ];
      };
    };
    "a package that uvx fetches in any version" = {
      kind = "fetched-unpinned";
      refused = server "fetch" {
        command = "/run/current-system/sw/bin/uvx";
        args = [ "mcp-server-fetch" ];
        isolation = "spawn";
      };
      message = "services.metamcp.servers.fetch.command fetches mcp-server-fetch in whatever version is the newest, which makes it slow to start and different from one day to the next: set `package` to one of nixpkgs";
      accepted = server "fetch" {
        command = "/run/current-system/sw/bin/uvx";
        args = [ "mcp-server-fetch==2026.1.14" ];
        isolation = "spawn";
      };
    };
    "an image without a version" = {
      kind = "fetched-unpinned";
      refused = exact "gitea" {
        command = "docker";
        args = [
          "run"
          "-i"
          "--rm"
          "-e"
          "GITEA_HOST"
          "docker.gitea.com:443/gitea-mcp-server:latest"
        ];
      };
      message = "services.metamcp.settings.servers.gitea.command fetches docker.gitea.com:443/gitea-mcp-server:latest in whatever version is the newest, which makes it slow to start and different from one day to the next: say the version, as in \"docker.gitea.com:443/gitea-mcp-server:1.2.3\".";
      accepted = exact "gitea" {
        command = "docker";
        args = [
          "run"
          "-i"
          "--rm"
          "-e"
          "GITEA_HOST"
          "docker.gitea.com/gitea-mcp-server:1.2.3"
        ];
      };
    };
    "a package that is fetched into a sandbox" = {
      kind = "fetched-in-a-sandbox";
      refused = server "files" {
        command = "npx";
        args = [
          "-y"
          "@modelcontextprotocol/server-filesystem@2026.1.14"
        ];
      };
      message = "services.metamcp.servers.files.command fetches @modelcontextprotocol/server-filesystem@2026.1.14 when it starts, and its sandbox leaves it nowhere to keep it: set `package` to one of nixpkgs, or services.metamcp.servers.files.sandbox.state = true";
      accepted = server "files" {
        command = "npx";
        args = [
          "-y"
          "@modelcontextprotocol/server-filesystem@2026.1.14"
        ];
        sandbox.state = true;
      };
    };
    "a package that is fetched without a network" = {
      kind = "fetched-in-a-sandbox";
      refused = server "files" {
        command = "uvx";
        args = [ "mcp-server-fetch@2026.1.14" ];
        sandbox.preset = "no-network";
      };
      message = "its sandbox leaves it no network to do so: set `package` to one of nixpkgs, or services.metamcp.servers.files.sandbox.network = true";
      accepted = server "files" {
        command = "mcp-server-fetch";
        sandbox.preset = "no-network";
      };
    };
    "a browser that is shared" = {
      kind = "browser-shared";
      refused = server "web" { command = "/opt/bin/playwright-mcp"; };
      message = "services.metamcp.servers.web drives a browser, and its clients would share the pages of it: set services.metamcp.servers.web.sharing = \"session\"";
      accepted = server "web" {
        command = "/opt/bin/playwright-mcp";
        sharing = "session";
      };
    };
    "a browser that is fetched and shared" = {
      kind = "browser-shared";
      refused = exact "web" {
        command = "npx";
        args = [ "chrome-devtools-mcp@1.2.3" ];
      };
      message = "services.metamcp.settings.servers.web drives a browser";
      accepted = exact "web" {
        command = "npx";
        args = [ "chrome-devtools-mcp@1.2.3" ];
        sharing = "exclusive";
      };
    };

    # ------------------------------------------------------------------ sandbox
    "a sandbox of a server that is spawned" = {
      kind = "sandbox-without-a-unit";
      refused = server "time" {
        isolation = "spawn";
        sandbox.memoryMax = "64M";
      };
      message = "services.metamcp.servers.time.sandbox has no effect, because the server runs in the sandbox of metamcp.service: remove it, or set services.metamcp.servers.time.isolation = \"unit\"";
      accepted = server "time" { sandbox.memoryMax = "64M"; };
    };
    "a working directory that the server does not see" = {
      kind = "cwd-hidden";
      refused = server "time" { cwd = "/home/alice/notes"; };
      message = "services.metamcp.servers.time.cwd is /home/alice/notes, which is hidden from the server: add it to services.metamcp.servers.time.sandbox.readOnlyPaths or writablePaths, or";
      accepted = server "time" {
        cwd = "/home/alice/notes";
        sandbox.writablePaths = [ "/home/alice" ];
      };
    };
    "a working directory in a home of which the server sees nothing" = {
      kind = "cwd-hidden";
      refused = server "time" {
        cwd = "/root";
        sandbox.readOnlyPaths = [ "/home/alice" ];
      };
      message = "services.metamcp.servers.time.cwd is /root, which is hidden from the server: ";
      accepted = server "time" {
        cwd = "/root";
        sandbox.home = "read-only";
      };
    };
    "a sandbox of an endpoint" = {
      kind = "sandbox-without-a-unit";
      refused = server "web" {
        url = "http://127.0.0.1:9000/mcp";
        sandbox.preset = "strict";
      };
      message = "services.metamcp.servers.web.sandbox has no effect, because metamcp does not start the server: remove it.";
      accepted = server "web" { url = "http://127.0.0.1:9000/mcp"; };
    };
    "addresses of a server without a network" = {
      kind = "without-effect";
      refused = server "time" {
        sandbox = {
          preset = "strict";
          allowedAddresses = [ "localhost" ];
        };
      };
      message = "services.metamcp.servers.time.sandbox.allowedAddresses has no effect, because the server has no network: set services.metamcp.servers.time.sandbox.network = true, or remove it.";
      accepted = server "time" {
        sandbox = {
          preset = "strict";
          network = true;
          allowedAddresses = [ "localhost" ];
        };
      };
    };
    "a header for a program" = {
      kind = "without-effect";
      refused = server "time" { headers.Accept-Language = "en"; };
      message = "services.metamcp.servers.time.headers has no effect, because a program gets none: remove it, or use env.";
      accepted = server "time" { env.LANG = "en"; };
    };
    "a variable for an address" = {
      kind = "without-effect";
      refused = server "web" {
        url = "http://127.0.0.1:9000/mcp";
        env.LANG = "en";
      };
      message = "services.metamcp.servers.web.env has no effect, because metamcp does not start the server: remove it.";
      accepted = server "web" {
        url = "http://127.0.0.1:9000/mcp";
        headers.Accept-Language = "en";
      };
    };
    "a header for a socket" = {
      kind = "without-effect";
      refused = server "web" {
        socket = "/run/web.sock";
        headers.Accept-Language = "en";
      };
      message = "services.metamcp.servers.web.headers has no effect, because a socket has none: remove it.";
      accepted = server "web" { socket = "/run/web.sock"; };
    };
    "packages of a server with a URL" = {
      kind = "without-effect";
      refused =
        { pkgs, ... }:
        server "web" {
          url = "http://127.0.0.1:9000/mcp";
          extraPackages = [ pkgs.bash ];
        };
      message = "services.metamcp.servers.web.extraPackages has no effect, because metamcp does not start the server: remove it.";
      accepted = server "web" { url = "http://127.0.0.1:9000/mcp"; };
    };
    "a user who has the name that systemd would make" = {
      kind = "user-taken";
      refused = both [
        (server "time" { })
        { users.users.mcp-time.isSystemUser = true; }
      ];
      message = "services.metamcp.servers.time is to run as mcp-time, a user that systemd makes, and users.users has one of that name: rename the server or the user, or set services.metamcp.servers.time.sandbox.user.";
      accepted = both [
        (server "time" { sandbox.user = "mcp-time"; })
        { users.users.mcp-time.isSystemUser = true; }
      ];
    };
    "a user of a server who does not exist" = {
      kind = "user-unknown";
      refused = server "time" { sandbox.user = "alice"; };
      message = "services.metamcp.servers.time.sandbox.user is alice, and there is no such user: declare users.users.alice";
      accepted = both [
        (server "time" { sandbox.user = "alice"; })
        { users.users.alice.isNormalUser = true; }
      ];
    };
    "a user of the service who does not exist" = {
      kind = "user-unknown";
      refused.services.metamcp.user = "alice";
      message = "services.metamcp.user is alice, and there is no such user: declare users.users.alice";
      accepted = {
        services.metamcp.user = "alice";
        users.users.alice.isNormalUser = true;
      };
    };
    "a group that does not exist" = {
      kind = "group-unknown";
      refused = server "time" { sandbox.group = "notes"; };
      message = "services.metamcp.servers.time.sandbox.group is notes, and there is no such group: declare users.groups.notes";
      accepted = both [
        (server "time" { sandbox.group = "notes"; })
        { users.groups.notes = { }; }
      ];
    };

    # --------------------------------------------------------------------- pool
    "a reserve that is never needed" = {
      kind = "reserve-without-need";
      refused = settings { pool.reserve_size = 2; };
      message = "services.metamcp.settings.pool.reserve_size has no effect, because all servers together have at most 1 connections, and services.metamcp.settings.pool.size is 20: remove it";
      accepted = both [
        (settings { pool.reserve_size = 2; })
        (server "web" {
          command = "web-mcp";
          sharing = "session";
          max_connections = 20;
        })
      ];
    };
    "a reserve that comes too late" = {
      kind = "reserve-too-late";
      refused = settings {
        pool = {
          size = 1;
          reserve_size = 1;
          reserve_timeout = "90s";
        };
        servers.web.command = "web-mcp";
      };
      message = "services.metamcp.settings.pool.reserve_size has no effect, because a request waits for at most 60s (service.request_timeout), and may have one of the reserve after 90s: make";
      accepted = settings {
        pool = {
          size = 1;
          reserve_size = 1;
          reserve_timeout = "59s";
        };
        servers.web.command = "web-mcp";
      };
    };

    # -------------------------------------------------------------------- types
    "a port with a zero in front" = {
      kind = "type";
      refused = settings { listen.http = "127.0.0.1:08080"; };
      message = "http' is not of type `IP address and port";
      accepted = settings { listen.http = "127.0.0.1:8080"; };
    };
    "a relative path of a certificate" = {
      kind = "type";
      refused = settings {
        listen.tls = {
          certificate = "chain.pem";
          key = "/etc/key.pem";
        };
      };
      message = "certificate' is not of type `absolute path as a string, or credential:NAME'";
      accepted = settings {
        listen.tls = {
          certificate = "/etc/chain.pem";
          key = "/etc/key.pem";
        };
      };
    };
    "a session key in the configuration itself" = {
      kind = "type";
      refused = settings { listen.session_key = "0123456789abcdef0123456789abcdef"; };
      message = "session_key' is not of type";
      accepted = both [
        (settings { listen.session_key = "credential:session-key"; })
        { services.metamcp.credentials.session-key = "/run/secrets/session-key"; }
      ];
    };
    "a token of clients in the configuration itself" = {
      kind = "type";
      refused = settings { listen.token = "0123456789abcdef0123456789abcdef"; };
      message = "token' is not of type";
      accepted = settings { listen.token = "env:METAMCP_TOKEN"; };
    };
    "a duration without a unit" = {
      kind = "type";
      refused = settings { service.request_timeout = "60"; };
      message = "request_timeout' is not of type `duration: a whole number and its unit, ms, s, m or h, from 1ms to 24h'";
      accepted = settings { service.request_timeout = "90s"; };
    };
    "a duration of more than a day" = {
      kind = "type";
      refused = settings { health.timeout = "25h"; };
      message = "health.timeout' is not of type `duration";
      accepted = settings { health.timeout = "24h"; };
    };
    "an unknown way to start" = {
      kind = "type";
      refused = server "time" { start = "later"; };
      message = "start' is not of type `one of \"lazy\", \"eager\", \"prewarm\"'";
      accepted = server "time" { start = "eager"; };
    };
    "an unknown way to live" = {
      kind = "type";
      refused = server "time" { lifecycle.mode = "for-ever"; };
      message = "lifecycle.mode' is not of type `one of \"keep-alive\", \"ephemeral\"'";
      accepted = server "time" { lifecycle.mode = "ephemeral"; };
    };
    "a mistyped key of a server" = {
      kind = "type";
      refused = server "time" { argv = [ "--utc" ]; };
      message = "`services.metamcp.servers.time.argv' does not exist";
      accepted = server "time" { args = [ "--utc" ]; };
    };
    "a mistyped key of how a server is watched" = {
      kind = "type";
      refused = server "time" { health.every = "1m"; };
      message = "`services.metamcp.servers.time.health.every' does not exist";
      accepted = server "time" { health.interval = "1m"; };
    };
    "a server to be provisioned without a description" = {
      kind = "type";
      refused = settings { provision.servers.mute.command = "a-mcp"; };
      message = "provision.servers.mute.description'";
      accepted = provisioned "mute" { command = "a-mcp"; };
    };
    "a server to be provisioned that starts before that" = {
      kind = "type";
      refused = provisioned "hasty" {
        command = "a-mcp";
        start = "eager";
      };
      message = "provision.servers.hasty.start' is not of type";
      accepted = provisioned "hasty" { command = "a-mcp"; };
    };
    "a rule that trusts everybody" = {
      kind = "type";
      refused = settings { provision.trusted = [ "*" ]; };
      message = "is not of type `namespace, or all below one";
      accepted = settings { provision.trusted = [ "@modelcontextprotocol/*" ]; };
    };
    "a confidence above certainty" = {
      kind = "type";
      refused = settings { provision.min_confidence = 1.5; };
      message = "min_confidence' is not of type";
      accepted = settings { provision.min_confidence = 1; };
    };
    "a key of the embedding endpoint in the configuration itself" = {
      kind = "type";
      refused = settings {
        search.embedding = {
          url = "http://127.0.0.1:8080/v1/embeddings";
          model = "small";
          api_key = "sk-0123456789";
        };
      };
      message = "api_key' is not of type";
      accepted = settings {
        search.embedding = {
          url = "http://127.0.0.1:8080/v1/embeddings";
          model = "small";
          api_key = "env:KEY";
        };
      };
    };
    "no set of meta-tools" = {
      kind = "type";
      refused = settings { tools.sets = [ ]; };
      message = "sets' is not of type";
      accepted = settings { tools.sets = [ "metatools" ]; };
    };
    "a relative cache directory" = {
      kind = "type";
      refused = settings { catalog.cache = "cache"; };
      message = "cache' is not of type";
      accepted = settings { catalog.cache = "off"; };
    };
    "a relative working directory" = {
      kind = "type";
      refused = server "notes" {
        command = "notes-mcp";
        cwd = "notes";
      };
      message = "cwd' is not of type";
      accepted = server "notes" {
        command = "notes-mcp";
        cwd = "/srv/notes";
      };
    };
    "an endpoint with TLS" = {
      kind = "type";
      refused = server "web" { url = "https://mcp.example.org/"; };
      message = "url' is not of type `null or URL that starts with http://'";
      accepted = server "web" { url = "http://127.0.0.1:9000/"; };
    };
    "an option that does not exist" = {
      kind = "type";
      refused.services.metamcp.port = 12011;
      message = "`services.metamcp.port' does not exist";
      accepted = settings { listen.http = "127.0.0.1:12012"; };
    };
  };
}
