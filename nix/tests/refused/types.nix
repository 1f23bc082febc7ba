# Cases of assertions and warnings: values that the type of an option rejects.
{
  both,
  provisioned,
  server,
  settings,
  ...
}:
{
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
  "an unknown start mode" = {
    kind = "type";
    refused = server "time" { start = "later"; };
    message = "start' is not of type `one of \"lazy\", \"eager\", \"prewarm\"'";
    accepted = server "time" { start = "eager"; };
  };
  "an unknown lifecycle mode" = {
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
  "a mistyped health key of a server" = {
    kind = "type";
    refused = server "time" { health.every = "1m"; };
    message = "`services.metamcp.servers.time.health.every' does not exist";
    accepted = server "time" { health.interval = "1m"; };
  };
  "a provisionable server without a description" = {
    kind = "type";
    refused = settings { provision.servers.mute.command = "a-mcp"; };
    message = "provision.servers.mute.description'";
    accepted = provisioned "mute" { command = "a-mcp"; };
  };
  "a provisionable server that is eager" = {
    kind = "type";
    refused = provisioned "hasty" {
      command = "a-mcp";
      start = "eager";
    };
    message = "provision.servers.hasty.start' is not of type";
    accepted = provisioned "hasty" { command = "a-mcp"; };
  };
  "a rule that trusts every namespace" = {
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
  "an endpoint of another protocol" = {
    kind = "type";
    refused = server "web" { url = "wss://mcp.example.org/"; };
    message = "url' is not of type `null or URL that starts with http:// or https://'";
    accepted = server "web" { url = "https://mcp.example.org/"; };
  };
  "an option that does not exist" = {
    kind = "type";
    refused.services.metamcp.port = 12011;
    message = "`services.metamcp.port' does not exist";
    accepted = settings { listen.http = "127.0.0.1:12012"; };
  };
}
