# A server that is a unit of its own: the socket unit that metamcp connects to,
# and the template of which systemd starts an instance for each connection.
#
# What a switch to another configuration does (switch-to-configuration-ng):
#   unchanged   nothing.
#   changed     It compares the template with that of each running instance.  If
#               they differ, it stops the instance and the socket that Sockets=
#               names, reloads systemd, and starts the socket: the next
#               connection of metamcp gets the new server, and a request that
#               comes meanwhile waits for it.  Where no instance runs, the reload
#               of systemd is all there is to do.
#   socket      A changed socket unit is only read again, which is enough for
#               MaxConnections=.  Its restartTriggers would have no effect.
#   removed     The socket and the instances are stopped.
#   added       sockets.target is started again, and with it the socket: after
#               the reload of metamcp, which connects to an eager server anew
#               until it is there.
# metamcp itself is touched only if metamcp.toml is another.
{
  declared,
  lib,
  sandbox,
}:
let
  inherit (lib) mkOption types;
  connections = import ./connections.nix;
  unitName = name: "metamcp-server-${name}";
in
{
  inherit unitName;

  # The options of a declared server that say where it runs.
  module.options = {
    isolation = mkOption {
      type = types.enum [
        "unit"
        "spawn"
      ];
      default = "unit";
      example = "spawn";
      description = ''
        Where `command` runs: in a `unit` of its own, with a user, credentials,
        limits and a sandbox of its own, or as a child that the service has to
        `spawn`, in the user and the sandbox of the service, like all of these:
        such a server can do what the service can, read its credentials, also
        `listen.token`, and use every server that is a unit.
      '';
    };

    sandbox = mkOption {
      type = types.submodule sandbox.module;
      default = { };
      description = "The sandbox of a `command` in a unit of its own.";
    };
  };

  # The units of a server, and what metamcp.toml says of it.
  units =
    {
      # services.metamcp.credentials.
      credentials,
      # services.metamcp.settings.servers, which have the last word.
      effective,
    }:
    name: server:
    let
      socketPath = "/run/metamcp-servers/${name}.sock";
      unit = unitName name;
      escapeSpecifiers = import ./escape-specifiers.nix { inherit lib; };

      isCredential = lib.hasPrefix "credential:";
      literals = lib.filterAttrs (_: value: !isCredential value) server.env;
      # Each secret is in a credential that is called as its variable.  An assertion
      # tells of one that is not declared.
      secrets =
        lib.mapAttrs (_: value: credentials.${lib.removePrefix "credential:" value} or "") (
          lib.filterAttrs (_: isCredential) server.env
        )
        // server.credentials;
    in
    {
      # In metamcp.toml: all that is not the unit's.
      settings =
        removeAttrs (declared.toSettings name server) [
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
        # The service wants it, and not the other way about: a further server does
        # not change metamcp.service.
        before = [ "metamcp.service" ];
        wantedBy = [
          "metamcp.service"
          "sockets.target"
        ];
        listenStreams = [ socketPath ];
        socketConfig = {
          Accept = true;
          # As many more that are just ending, and two of operators who look.
          MaxConnections = 2 * connections effective.${name} + 2;
          RemoveOnStop = true;
          # Whoever may connect may use every tool.
          SocketGroup = "metamcp-servers";
          SocketMode = "0660";
        };
      };

      service = {
        description = "MCP server ${name}";
        # Stopped after metamcp, which drains first and hangs up: most servers leave
        # at that.  metamcp cannot signal one that stays; a stop of metamcp can.
        before = [ "metamcp.service" ];
        # What is hidden from it must be there to be hidden.
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
          # The home of a user that systemd makes is /, where nothing can be kept.
          lib.optionalAttrs (server.sandbox.state || server.sandbox.user == null) {
            HOME = if server.sandbox.state then "/var/lib/${sandbox.stateDirectory name}" else "/tmp";
          }
          // lib.mapAttrs (
            key: value:
            # NixOS sets this one itself.
            (if key == "PATH" then lib.mkForce else lib.id) (escapeSpecifiers value)
          ) literals;

        # Credentials lose their last newline, as editors add one.
        script =
          lib.concatMapStrings (key: ''
            ${key}=$(<"$CREDENTIALS_DIRECTORY/${key}")
            export ${key}
          '') (lib.attrNames secrets)
          # Where NixOS is told to check scripts (systemd.enableStrictShellChecks):
          # an argument is what it is, and no slip.
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
          # In the journal, and not the name of the start script.
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
