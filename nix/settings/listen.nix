# [listen]: where clients connect, and how they are spoken to.
{
  lib,
  # For the service of a user, and not of the host.
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
      Address of the HTTP endpoint; {file}`metamcp.socket` listens on it.
      One that is not of the loopback interface needs both
      {option}`services.metamcp.settings.listen.tls` and
      {option}`services.metamcp.settings.listen.token`. Clients that
      connect to it under a name, or through another address, need an
      entry in {option}`services.metamcp.settings.listen.allowed_hosts`.
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
              PEM file with the certificate of the service and, after
              it, those of its issuers: an absolute path that the
              service may read, or `credential:NAME` for an entry of
              {option}`services.metamcp.credentials`.
            '';
          };
          key = mkOption {
            type = credentialOrPath;
            example = "credential:tls-key";
            description = "PEM file with its private key, likewise.";
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
      Certificate and key, for clients that connect with `https://`;
      plain HTTP if `null`. A reload reads paths again. systemd reads
      credentials only when the service starts, so that a renewed one
      takes a restart.
    '';
  };
  token = mkOption {
    type = types.nullOr (types.strMatching "credential:[^./][^/]*|env:[^=]+");
    default = null;
    example = "credential:client-token";
    description = ''
      Token that clients must bring, in a header
      `Authorization: Bearer TOKEN`: `credential:NAME` for an entry of
      {option}`services.metamcp.credentials`, or `env:NAME` for a variable
      of the service. One line of at least 16 characters without spaces,
      as `openssl rand -hex 32` prints it. If `null`, whoever reaches the
      address is answered.
    '';
  };
  control = mkOption {
    type = if forUser then types.nullOr socketPath else socketPath;
    default = if forUser then null else "/run/metamcp/control.sock";
    example = "/run/metamcp/operators.sock";
    description =
      if forUser then
        ''
          Path of the control socket; {file}`metamcp-control.socket`
          listens on it. {file}`$XDG_RUNTIME_DIR/metamcp/control.sock` if
          `null`.
        ''
      else
        ''
          Path of the control socket; {file}`metamcp-control.socket`
          listens on it. Members of the group
          {option}`services.metamcp.settings.listen.control_group` may connect.
        '';
  };
  control_group = mkOption {
    type = types.nullOr group;
    default = if forUser then null else "metamcp";
    example = "wheel";
    description = ''
      Group whose members may use the control socket, besides root and
      the user of the service. ${
        if forUser then
          "They must be able to connect to it, too"
        else
          "The socket belongs to it, to `metamcp` if `null`"
      }.
    '';
  };
  rpc = mkOption {
    type = types.bool;
    default = false;
    example = true;
    description = ''
      Whether what the control socket answers is answered at
      `POST /rpc` too, to whoever reaches the address: everything that
      an operator can do.
    '';
  };
  root = mkOption {
    type = view;
    default = "direct";
    example = "passthrough:cluster";
    description = ''
      What clients see: `direct` for the tools of all servers under
      names with the server as prefix, `meta` for a handful of tools
      that find and call them, `passthrough:NAME` for one server as
      it is.
    '';
  };
  allowed_hosts = mkOption {
    type = types.listOf host;
    default = [ ];
    example = [ "mcp.example.org" ];
    description = ''
      Values of the `Host` header to accept besides those of the loopback
      interface and the address that the client has connected to: the
      names under which clients reach the service from elsewhere, without
      port.
    '';
  };
  allowed_origins = mkOption {
    type = types.listOf origin;
    default = [ ];
    example = [ "https://chat.example.org" ];
    description = "Origins of web pages that are served besides loopback ones, and that may read what they are answered.";
  };
  keep_alive = mkOption {
    type = duration;
    default = "15s";
    example = "30s";
    description = "How long a stream to a client may be silent before a comment keeps it alive.";
  };
  stream_after = mkOption {
    type = durationOrZero;
    default = "2s";
    example = "0s";
    description = ''
      How long an answer may take before it is sent as a stream of
      events, `"0s"` to send all answers that way.
    '';
  };
  write_timeout = mkOption {
    type = duration;
    default = "30s";
    example = "1m";
    description = ''
      How long a client may take nothing of what is written to it
      before its connection is cut.
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
      Which session ids clients must send: any or none (`lenient`),
      one that the service has issued, as the specification has it
      (`strict`), or there are no sessions (`off`).
    '';
  };
  session_key = mkOption {
    type = types.nullOr credential;
    default = null;
    example = "credential:session-key";
    description = ''
      Entry of {option}`services.metamcp.credentials` with at least 32
      bytes to sign session ids with, the same on every host that is
      to know them. If `null`, a key that is made at the first start
      and kept in {file}`${if forUser then "~/.local/state" else "/var/lib"}/metamcp`.
    '';
  };
  session_timeout = mkOption {
    type = duration;
    default = "30m";
    example = "8h";
    description = "After how long a session is forgotten that has no stream and no request.";
  };
  json_response = mkOption {
    type = types.bool;
    default = false;
    example = true;
    description = "Whether a POST is always answered with one JSON body and never with a stream of events.";
  };
  legacy_sse = mkOption {
    type = types.bool;
    default = false;
    example = true;
    description = ''
      Whether HTTP with SSE is served too, at `/sse`, for clients that
      speak only protocol version 2024-11-05.
    '';
  };
}
