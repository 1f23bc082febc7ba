# The units of a server: the socket unit that metamcp connects to, and the template
# unit. systemd starts an instance of the template for each connection.
#
# A switch to another configuration (switch-to-configuration-ng) acts on each server:
#   unchanged   It does nothing.
#   changed     It compares the template with that of each running instance. If they
#               differ, it stops the instance and the socket that Sockets= names,
#               reloads systemd, and starts the socket. The next connection of
#               metamcp gets the new server; requests wait for it meanwhile. If no
#               instance runs, it only reloads systemd.
#   socket      systemd reads a changed socket unit again, which suffices for
#               MaxConnections=. restartTriggers of the socket would have no effect.
#   removed     It stops the socket and the instances.
#   added       It starts sockets.target again, and with it the socket. metamcp has
#               reloaded before that, and retries an eager server until the socket
#               exists.
# It reloads metamcp itself only if metamcp.toml has changed.
{
  lib,
  sandbox,
  serverOptions,
}:
let
  inherit (lib) mkOption types;
  connectionLimit = import ./connection-limit.nix;
  unitName = name: "metamcp-server-${name}";
in
{
  inherit unitName;

  # The options for where a declared server runs.
  module.options = {
    isolation = mkOption {
      type = types.enum [
        "unit"
        "spawn"
      ];
      default = "unit";
      example = "spawn";
      description = ''
        Where `command` runs. `unit`: in its own systemd unit, with its own
        user, credentials, limits and sandbox. `spawn`: as a child of the
        service, with the user and sandbox of the service. A spawned server can
        do everything that the service can do: it can read the credentials of
        the service, including `listen.token`, and use every server unit.
      '';
    };

    sandbox = mkOption {
      type = types.submodule sandbox.module;
      default = { };
      description = "The sandbox of the unit that runs `command`.";
    };
  };

  # The units of a server, and its table in metamcp.toml.
  units =
    {
      # services.metamcp.credentials.
      credentials,
      # services.metamcp.settings.servers, which override services.metamcp.servers.
      effective,
    }:
    name: server:
    let
      socketPath = "/run/metamcp-servers/${name}.sock";
      unit = unitName name;
      escapeSpecifiers = import ./escape-specifiers.nix { inherit lib; };

      isCredential = lib.hasPrefix "credential:";
      literals = lib.filterAttrs (_: value: !isCredential value) server.env;
      # Each secret is a credential with the name of its variable. An assertion reports
      # a reference to an undeclared credential.
      secrets =
        lib.mapAttrs (_: value: credentials.${lib.removePrefix "credential:" value} or "") (
          lib.filterAttrs (_: isCredential) server.env
        )
        // server.credentials;
    in
    {
      # The table in metamcp.toml, without the keys that the unit implements.
      settings =
        removeAttrs (serverOptions.toSettings name server) [
          "args"
          "command"
          "cwd"
          "env"
        ]
        // {
          socket = lib.mkDefault socketPath;
        };

      socket = {
        description = "Socket of the MCP server ${name}";
        # The socket declares the dependency of metamcp.service, so that a new server
        # does not change metamcp.service.
        before = [ "metamcp.service" ];
        wantedBy = [
          "metamcp.service"
          "sockets.target"
        ];
        listenStreams = [ socketPath ];
        socketConfig = {
          Accept = true;
          # Twice the limit, because old connections may still be closing, and two for
          # operators who inspect the server.
          MaxConnections = 2 * connectionLimit effective.${name} + 2;
          RemoveOnStop = true;
          # A process that can connect can use every tool.
          SocketGroup = "metamcp-servers";
          SocketMode = "0660";
        };
      };

      service = {
        description = "MCP server ${name}";
        # systemd stops the server after metamcp. metamcp drains and closes its
        # connections first, and most servers exit then. metamcp cannot signal the
        # others; StopPropagatedFrom= stops them.
        before = [ "metamcp.service" ];
        # The sockets of the resolvers must exist before the sandbox can hide them.
        after = lib.optional (!server.sandbox.network) "nss-lookup.target";
        unitConfig = {
          CollectMode = "inactive-or-failed";
          StopPropagatedFrom = [
            "metamcp.service"
            "${unit}.socket"
          ];
        };

        path = server.extraPackages;
        environment =
          # The home of a dynamic user is /, which is not writable.
          lib.optionalAttrs (server.sandbox.state || server.sandbox.user == null) {
            HOME = if server.sandbox.state then "/var/lib/${sandbox.stateDirectory name}" else "/tmp";
          }
          // lib.mapAttrs (
            key: value:
            # NixOS sets PATH itself.
            (if key == "PATH" then lib.mkForce else lib.id) (escapeSpecifiers value)
          ) literals;

        # $(<…) removes the newline that editors add at the end of a file.
        script =
          lib.concatMapStrings (key: ''
            ${key}=$(<"$CREDENTIALS_DIRECTORY/${key}")
            export ${key}
          '') (lib.attrNames secrets)
          # NixOS may check the script (systemd.enableStrictShellChecks). Arguments are
          # literal, so that every warning about them is false.
          + "# shellcheck disable=all\n"
          + "exec ${lib.escapeShellArgs ([ server.command ] ++ server.args)}\n";

        serviceConfig = lib.mapAttrs (_: lib.mkDefault) (sandbox.directives name server.sandbox) // {
          LoadCredential = lib.mapAttrsToList (
            key: file: "${key}:${escapeSpecifiers (toString file)}"
          ) secrets;
          Sockets = "${unit}.socket";
          StandardError = "journal";
          StandardInput = "socket";
          StandardOutput = "socket";
          # Without it, the journal shows the name of the start script.
          SyslogIdentifier = lib.mkDefault unit;
          TimeoutStopSec = lib.mkDefault "5s";
          WorkingDirectory = lib.mkIf (server.cwd != null || server.sandbox.state) (
            escapeSpecifiers (
              if server.cwd != null then server.cwd else "/var/lib/${sandbox.stateDirectory name}"
            )
          );
        };
      };
    };
}
