# Cases of assertions and warnings: secrets.
{
  both,
  settingsServer,
  provisioned,
  server,
  settings,
  storeFile,
  ...
}:
{
  "a credential of a server with a socket" = {
    kind = "without-effect";
    refused = server "notes" {
      socket = "/run/notes.sock";
      credentials.TOKEN = "/run/secrets/notes";
    };
    message = "services.metamcp.servers.notes.credentials has no effect, because the server is a unit that metamcp only connects to: remove it";
    accepted = server "notes" { socket = "/run/notes.sock"; };
  };
  "a reference to a credential that is not declared" = {
    kind = "unknown-credential";
    refused = settingsServer "shell" {
      command = "a-mcp";
      env.KEY = "credential:forgotten";
    };
    message = "services.metamcp.settings.servers.shell.env.KEY refers to the credential forgotten, which does not exist: set services.metamcp.credentials.forgotten";
    accepted = both [
      (settingsServer "shell" {
        command = "a-mcp";
        env.KEY = "credential:forgotten";
      })
      { services.metamcp.credentials.forgotten = "/run/secrets/forgotten"; }
    ];
  };
  "an undeclared credential of a provisionable server" = {
    kind = "unknown-credential";
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
    kind = "unknown-credential";
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
    kind = "unknown-credential";
    refused = settings { listen.session_key = "credential:lost"; };
    message = "services.metamcp.settings.listen.session_key refers to the credential lost, which does not exist: set services.metamcp.credentials.lost";
    accepted = both [
      (settings { listen.session_key = "credential:lost"; })
      { services.metamcp.credentials.lost = "/run/secrets/session-key"; }
    ];
  };
  "a token of clients that is not declared" = {
    kind = "unknown-credential";
    refused = settings { listen.token = "credential:lost"; };
    message = "services.metamcp.settings.listen.token refers to the credential lost, which does not exist: set services.metamcp.credentials.lost";
    accepted = both [
      (settings { listen.token = "credential:lost"; })
      { services.metamcp.credentials.lost = "/run/secrets/client-token"; }
    ];
  };
  "a key of the embedding endpoint that is not declared" = {
    kind = "unknown-credential";
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
  "a TLS key in the Nix store" = {
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
    refused.services.metamcp.credentials.leaked = ../example.nix;
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
  "a secret that is also set in env" = {
    kind = "credential-and-value";
    refused = server "time" {
      credentials.API_TOKEN = "/run/secrets/token";
      env.API_TOKEN = "env:API_TOKEN";
      isolation = "spawn";
    };
    message = "services.metamcp.servers.time.credentials.API_TOKEN is also set in env or headers: remove one";
    accepted = server "time" { credentials.API_TOKEN = "/run/secrets/token"; };
  };
  "a secret with an invalid variable name" = {
    kind = "invalid-variable-name";
    refused = server "time" { credentials.api-token = "/run/secrets/token"; };
    message = "services.metamcp.servers.time sets the environment variable api-token, which is not a valid name: use letters";
    # A header may have this name.
    accepted = server "web" {
      url = "http://127.0.0.1:9000/mcp";
      credentials.api-token = "/run/secrets/token";
    };
  };
  "a variable of the service in a server unit" = {
    kind = "variable-of-the-service";
    refused = server "time" { env.PLACE = "env:PLACE"; };
    message = "services.metamcp.servers.time.env.PLACE refers to a variable of metamcp.service, which the unit of the server does not have: write the value";
    accepted = server "time" {
      env.PLACE = "env:PLACE";
      isolation = "spawn";
    };
  };
  "a secret in a variable" = {
    kind = "secret-value";
    refused = settingsServer "shell" {
      command = "a-mcp";
      env.API_KEY = "hunter2";
    };
    message = "services.metamcp.settings.servers.shell.env.API_KEY looks like a secret, and every user can read it in the Nix store: put it into a file, name the file in services.metamcp.credentials";
    accepted = settingsServer "shell" {
      command = "a-mcp";
      env.API_KEY_FILE = "/run/secrets/key";
    };
  };
  "a secret in a header" = {
    kind = "secret-value";
    refused = server "web" {
      url = "http://127.0.0.1:9000/mcp";
      headers.Authorization = "Bearer abc";
    };
    message = "services.metamcp.servers.web.headers.Authorization looks like a secret, and every user can read it in the Nix store: put it into a file, and name the file in services.metamcp.servers.web.credentials";
    accepted = server "web" {
      url = "http://127.0.0.1:9000/mcp";
      headers.X-Team = "search";
    };
  };
  "a token in a variable with a harmless name" = {
    kind = "secret-value";
    refused = server "time" { env.LOGIN = "ghp_0123456789abcdef"; };
    message = "services.metamcp.servers.time.env.LOGIN looks like a secret";
    accepted = server "time" { env.LOGIN = "alice"; };
  };
  "a secret in an argument" = {
    kind = "secret-argument";
    refused = server "time" { args = [ "--token=hunter2" ]; };
    message = "services.metamcp.servers.time.args seems to contain a secret, and every user can read it in the Nix store and in the list of processes: pass it in an environment variable";
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
    message = "services.metamcp.settings.provision.servers.web.args seems to contain a secret";
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
    message = "services.metamcp.servers.web.url seems to contain a secret, and every user can read it in the Nix store: send it in a header, from a file in services.metamcp.servers.web.credentials";
    accepted = server "web" {
      url = "http://127.0.0.1:9000/mcp?toolset=search";
      credentials.X-API-Key = "/run/secrets/key";
    };
  };
  "a login of a proxy" = {
    kind = "secret-proxy";
    refused = server "web" {
      url = "https://mcp.example.org/mcp";
      proxy = "http://alice:hunter2@proxy.example.org:3128";
    };
    message = "services.metamcp.servers.web.proxy contains a login, and every user can read it in the Nix store: set it to \"environment\"";
    accepted = server "web" {
      url = "https://mcp.example.org/mcp";
      proxy = "environment";
    };
  };
  "a secret of a client in the configuration" = {
    kind = "type";
    refused = server "web" {
      url = "https://mcp.example.org/mcp";
      auth = {
        client_id = "metamcp";
        client_secret = "hunter2";
      };
    };
    message = "services.metamcp.servers.web.auth";
    accepted = {
      services.metamcp.credentials.web-client = "/run/secrets/web-client";
      services.metamcp.servers.web = {
        url = "https://mcp.example.org/mcp";
        auth = {
          client_id = "metamcp";
          client_secret = "credential:web-client";
        };
      };
    };
  };
  "an unknown credential of a client" = {
    kind = "unknown-credential";
    refused = server "web" {
      url = "https://mcp.example.org/mcp";
      auth = {
        client_id = "metamcp";
        client_secret = "credential:web-client";
      };
    };
    message = "services.metamcp.servers.web.auth.client_secret refers to the credential web-client, which does not exist: set services.metamcp.credentials.web-client to the path of a file that holds the secret.";
    accepted = server "web" {
      url = "https://mcp.example.org/mcp";
      auth.client_id = "metamcp";
    };
  };
  "a private key for an endpoint in the Nix store" = {
    kind = "tls-key-in-the-store";
    refused = server "web" {
      url = "https://mcp.example.org/mcp";
      tls = {
        certificate = "/etc/metamcp.pem";
        key = storeFile;
      };
    };
    message = "services.metamcp.servers.web.tls.key is in the Nix store, where every user can read it: set it to the path of a file outside the store";
    accepted = server "web" {
      url = "https://mcp.example.org/mcp";
      tls = {
        certificate = "/etc/metamcp.pem";
        key = "/run/secrets/metamcp.pem";
      };
    };
  };
}
