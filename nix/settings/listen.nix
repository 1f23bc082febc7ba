# [listen]: the addresses for clients and operators, and the sessions of clients.
{
  lib,
  # True for the Home Manager module, which is for the service of a user.
  forUser,
}:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; })
    address
    credential
    credentialOrPath
    duration
    durationOrZero
    group
    host
    origin
    socketPath
    view
    ;
in
{
  http = mkOption {
    type = address;
    default = "127.0.0.1:12011";
    example = "[::1]:12011";
    description = ''
      The address for clients. {file}`metamcp.socket` listens on it. An
      address that is not on the loopback interface requires both
      {option}`services.metamcp.settings.listen.tls` and
      {option}`services.metamcp.settings.listen.token`. If clients
      connect by name or through another address, list it in
      {option}`services.metamcp.settings.listen.allowed_hosts`.
    '';
  };
  tls = mkOption {
    type = types.nullOr (
      types.submodule {
        options = {
          certificate = mkOption {
            type = credentialOrPath;
            example = "credential:tls-certificate";
            description = ''
              A PEM file with the certificate of the service, followed
              by those of its issuers: an absolute path that the
              service can read, or `credential:NAME` for an entry of
              {option}`services.metamcp.credentials`.
            '';
          };
          key = mkOption {
            type = credentialOrPath;
            example = "credential:tls-key";
            description = "A PEM file with the private key, in the same form.";
          };
        };
      }
    );
    default = null;
    example = {
      certificate = "credential:tls-certificate";
      key = "credential:tls-key";
    };
    description = ''
      The certificate and key for TLS, for clients that connect with
      `https://`. If `null`, the service speaks plain HTTP. A reload
      reads paths again. systemd reads credentials only when the service
      starts, so that a renewed credential requires a restart.
    '';
  };
  token = mkOption {
    type = types.nullOr (types.strMatching "credential:[^./][^/]*|env:[^=]+");
    default = null;
    example = "credential:client-token";
    description = ''
      The token that clients must send, in the header
      `Authorization: Bearer TOKEN`: `credential:NAME` for an entry of
      {option}`services.metamcp.credentials`, or `env:NAME` for a variable
      of the service. The token is one line of at least 16 characters
      without spaces, for example the output of `openssl rand -hex 32`.
      If `null`, metamcp answers every client that reaches the address.
    '';
  };
  control = mkOption {
    type = if forUser then types.nullOr socketPath else socketPath;
    default = if forUser then null else "/run/metamcp/control.sock";
    example = "/run/metamcp/operators.sock";
    description =
      if forUser then
        ''
          The path of the control socket. {file}`metamcp-control.socket`
          listens on it. If `null`,
          {file}`$XDG_RUNTIME_DIR/metamcp/control.sock`.
        ''
      else
        ''
          The path of the control socket. {file}`metamcp-control.socket`
          listens on it. Members of the group
          {option}`services.metamcp.settings.listen.control_group` may connect.
        '';
  };
  control_group = mkOption {
    type = types.nullOr group;
    default = if forUser then null else "metamcp";
    example = "wheel";
    description = ''
      The group whose members may use the control socket, besides root
      and the user of the service. ${
        if forUser then
          "They must also have access to the path of the socket"
        else
          "The socket belongs to this group. If `null`, `metamcp`"
      }.
    '';
  };
  rpc = mkOption {
    type = types.bool;
    default = false;
    example = true;
    description = ''
      Whether metamcp also answers the methods of the control socket at
      `POST /rpc`. Every client that reaches the address can then do
      everything that an operator can.
    '';
  };
  root = mkOption {
    type = view;
    default = "direct";
    example = "passthrough:cluster";
    description = ''
      The view that clients see at `/`. `direct`: the tools of all
      servers, with the name of the server as prefix. `meta`: a few
      tools that find and call all others. `passthrough:NAME`: one
      server, unchanged.
    '';
  };
  allowed_hosts = mkOption {
    type = types.listOf host;
    default = [ ];
    example = [ "mcp.example.org" ];
    description = ''
      Further names, without port, that metamcp accepts in the `Host`
      header. They are the names under which clients on other hosts reach
      the service. metamcp always accepts loopback names, and the address
      that the client connected to.
    '';
  };
  allowed_origins = mkOption {
    type = types.listOf origin;
    default = [ ];
    example = [ "https://chat.example.org" ];
    description = "The origins of web pages that metamcp serves, besides loopback origins. These pages may also read the answers (CORS).";
  };
  keep_alive = mkOption {
    type = duration;
    default = "15s";
    example = "30s";
    description = "The silence on a stream to a client after which metamcp sends a comment to keep it open.";
  };
  stream_after = mkOption {
    type = durationOrZero;
    default = "2s";
    example = "0s";
    description = ''
      The time after which metamcp sends an answer as a stream of
      events and not as JSON. `"0s"`: every answer is a stream.
    '';
  };
  write_timeout = mkOption {
    type = duration;
    default = "30s";
    example = "1m";
    description = ''
      The longest time in which a client reads nothing of what metamcp
      writes. After it, metamcp closes the connection.
    '';
  };
  session = mkOption {
    type = types.enum [
      "lenient"
      "strict"
      "off"
    ];
    default = "lenient";
    example = "strict";
    description = ''
      The session ids that clients must send. `lenient`: any or none.
      `strict`: one that metamcp issued, as in the specification.
      `off`: none, because there are no sessions.
    '';
  };
  session_key = mkOption {
    type = types.nullOr credential;
    default = null;
    example = "credential:session-key";
    description = ''
      `credential:NAME` for an entry of
      {option}`services.metamcp.credentials` with at least 32 bytes.
      metamcp signs session ids with it. All hosts that accept the same
      sessions need the same key. If `null`, metamcp creates a key at
      the first start and keeps it in {file}`${if forUser then "~/.local/state" else "/var/lib"}/metamcp`.
    '';
  };
  session_timeout = mkOption {
    type = duration;
    default = "30m";
    example = "8h";
    description = "The time after which metamcp forgets a session that has no stream and no request.";
  };
  json_response = mkOption {
    type = types.bool;
    default = false;
    example = true;
    description = "Whether metamcp always answers a POST with one JSON body and never with a stream of events.";
  };
  legacy_sse = mkOption {
    type = types.bool;
    default = false;
    example = true;
    description = ''
      Whether metamcp also serves HTTP with SSE, at `/sse`, for clients
      that speak only protocol version 2024-11-05.
    '';
  };
}
