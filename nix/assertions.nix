# What an evaluation refuses, and what it warns about.  Each message names the
# option and ends in the remedy; what has no remedy is not warned about.
#
# What services.metamcp.settings merely says wrongly is told by `metamcp check`
# while the system is built, and not here.
{ lib }:
{
  # services.metamcp, of NixOS or of Home Manager.
  cfg,
  # users.users and users.groups, null where a service has no other user.
  users ? null,
  groups ? null,
  # systemd.services and its definitions with their files, none for a user.
  services ? { },
  serviceDefinitions ? [ ],
}:
let
  inherit (cfg) settings;
  inherit (settings) listen;

  inherit (import ./types.nix { inherit lib; }) isName nameRule;
  inherit (import ./sandbox.nix { inherit lib; }) homeThatShows isHidden userName;
  warnings = import ./warnings.nix { inherit lib; } cfg;
  inventory = import ./inventory.nix { inherit lib; } cfg;
  clashes = import ./clashes.nix { inherit lib; } {
    inherit cfg services;
    definitions = serviceDefinitions;
  };
  inherit (inventory)
    declared
    effective
    hasOneWay
    isDeclared
    sandbox
    servers
    upstream
    ;

  inherit ((import ./address.nix { inherit lib; }).own listen.http) isLoopback isOurs;

  # Whether a command is `metamcp stdio`, the way of clients to this service.
  isBridge =
    { command, args, ... }:
    command != null
    && builtins.match "(.*/)?metamcp" command != null
    && lib.elem "stdio" args
    && !lib.any (arg: builtins.match "--(socket|standalone)(=.*)?" arg != null) args;

  # ------------------------------------------------------------------ secrets
  isCredential = lib.hasPrefix "credential:";
  isInStore = file: builtins.isPath file || lib.hasPrefix builtins.storeDir (toString file);

  # Every value that may be a reference, with the option it stands in.
  values = ownValues ++ inventory.values;
  ownValues = lib.filter ({ value, ... }: value != null) (
    lib.mapAttrsToList (key: value: {
      inherit value;
      option = "services.metamcp.settings.listen.tls.${key}";
    }) (if listen.tls == null then { } else listen.tls)
    ++ [
      {
        value = listen.session_key;
        option = "services.metamcp.settings.listen.session_key";
      }
      {
        value = listen.token;
        option = "services.metamcp.settings.listen.token";
      }
      {
        value = if settings.search.embedding == null then null else settings.search.embedding.api_key;
        option = "services.metamcp.settings.search.embedding.api_key";
      }
    ]
  );

  # Every file with a secret, with the option that names it.  Those of servers
  # that are no units are among services.metamcp.credentials, too.
  secretFiles =
    lib.mapAttrsToList (name: file: {
      inherit file;
      option = "services.metamcp.credentials.${name}";
    }) (removeAttrs cfg.credentials (map ({ credential, ... }: credential) ofServers))
    ++ ofServers;
  ofServers = lib.concatMap (
    {
      name,
      option,
      place,
      server,
      ...
    }:
    lib.mapAttrsToList (key: file: {
      inherit file key server;
      option =
        if option != place && key == "X-API-Key" && upstream.apiKeyFile != null then
          "${option}.apiKeyFile"
        else
          "${place}.credentials.${key}";
      credential = "${name}.${key}";
    }) server.credentials
  ) declared;

  # -------------------------------------------------------------------- users
  strangers =
    kind: known:
    lib.filter
      (
        { value, ... }:
        known != null && value != null && builtins.match "[0-9]+" value == null && !(known ? ${value})
      )
      (
        [
          {
            value = cfg.${kind} or null;
            option = "services.metamcp.${kind}";
          }
          {
            value = if kind == "group" then listen.control_group else null;
            option = "services.metamcp.settings.listen.control_group";
          }
        ]
        ++ map (
          { option, server, ... }:
          {
            value = server.sandbox.${kind} or null;
            option = "${option}.sandbox.${kind}";
          }
        ) declared
      );

  must = assertion: message: { inherit assertion message; };
  refuse = must false;

  assertions = {
    address-in-the-open = [
      (must (isLoopback || listen.tls != null && listen.token != null)
        "services.metamcp.settings.listen.http is ${listen.http}, which is not a loopback address, so that everybody on the network is served: set services.metamcp.settings.listen.tls and services.metamcp.settings.listen.token, or listen on 127.0.0.1."
      )
    ];

    firewall-of-loopback = [
      (must (cfg.openFirewall or false -> !isLoopback)
        "services.metamcp.openFirewall opens the port of ${listen.http}, which only this host reaches: remove it, or set services.metamcp.settings.listen.http to an address of the network, with listen.tls and listen.token."
      )
    ];

    root-view = [
      (must
        (
          lib.elem listen.root [
            "direct"
            "meta"
          ]
          || settings.servers ? ${lib.removePrefix "passthrough:" listen.root}
        )
        "services.metamcp.settings.listen.root is ${listen.root}, but there is no such server: declare it in services.metamcp.servers, or use \"direct\"."
      )
    ];

    name = map (
      { name, option, ... }:
      must (isName name) "${option} is not a valid name: use ${nameRule}."
    ) servers;

    way =
      map (
        { option, ... }@found:
        must (hasOneWay found) "${option} needs one of command, url and socket: set ${lib.optionalString (isDeclared option) "`package` or "}`command` for a program to run, `url` for an endpoint or `socket` for a unit to connect to, and no other."
      ) servers
      ++ map (
        { name, option, ... }@found:
        must (hasOneWay found -> hasOneWay { server = effective name; })
          "services.metamcp.settings.servers.${name} makes ${option} reachable in another way too: remove one of them."
      ) declared;

    provisioned-and-there = map (
      name:
      must (!(settings.servers ? ${name}))
        "services.metamcp.settings.provision.servers.${name} is declared in services.metamcp.${
          lib.optionalString (!(cfg.servers ? ${name})) "settings."
        }servers too, and so is there anyway: remove or rename one."
    ) (lib.attrNames settings.provision.servers);

    own-url = map (
      { option, server, ... }:
      must (server.url != null -> !isOurs server.url)
        "${option}.url is ${toString server.url}, where metamcp itself listens: give the address of the server, or another port to services.metamcp.settings.listen.http."
    ) servers;

    own-command = map (
      { option, server, ... }:
      must (!isBridge server)
        "${option}.command is metamcp's own bridge to this service, which would call itself: remove the server, or name what is behind the bridge."
    ) servers;

    own-socket = map (
      { option, server, ... }:
      must (
        server.socket == null || server.socket != listen.control
      ) "${option}.socket is metamcp's own control socket: give the socket of the server's unit."
    ) servers;

    # Where the unit is taken, its other service has to be renamed first.
    own-unit = lib.optional (upstream != null && !clashes.isTaken) (
      must
        (
          !lib.elem (upstream.unit or null) [
            "metamcp"
            "metamcp.service"
          ]
        )
        "services.metamcp.upstream.unit is metamcp's own unit: give that of the upstream, or leave it null. If the unit of the upstream has this name too, rename it, for example to mcp-aggregator.service."
    );

    unit-taken = map refuse clashes.unit-taken;
    directory-taken = map refuse clashes.directory-taken;

    credential-unknown = map (
      { option, value, ... }@found:
      let
        name = lib.removePrefix "credential:" value;
      in
      must (isCredential value -> cfg.credentials ? ${name})
        "${option} refers to the credential ${name}, which does not exist: set services.metamcp.credentials.${name} to the path of a file that holds the secret${
          lib.optionalString (isDeclared (found.server or "")) ", or use ${found.server}.credentials"
        }."
    ) values;

    credential-in-the-store = map (
      { option, file, ... }:
      must (!isInStore file)
        "${option} would put the secret into the Nix store, where every user can read it: give the path as a string (\"/run/secrets/NAME\") to a file outside of the store."
    ) secretFiles;

    tls-key-in-the-store = lib.optional (listen.tls != null) (
      must (!isInStore listen.tls.key)
        "services.metamcp.settings.listen.tls.key is in the Nix store, where every user can read it: give the path of a file outside of the store, or name it in services.metamcp.credentials and refer to it with \"credential:NAME\"."
    );

    # The start script of a unit exports it.
    variable = lib.concatMap (
      { option, server, ... }:
      map (
        key:
        must (builtins.match "[A-Za-z_][A-Za-z0-9_]*" key != null)
          "${option} is to get an environment variable ${key}, which is no name of one: use letters, digits and _, and no digit first."
      ) (lib.attrNames (server.env // server.credentials))
    ) (lib.filter ({ isUnit, ... }: isUnit) declared);

    credential-and-value = map (
      {
        option,
        key,
        server,
        ...
      }:
      must (
        !(server.env ? ${key}) && !(server.headers ? ${key})
      ) "${option} is also set as a value of its own: leave one of them out."
    ) ofServers;

    variable-of-the-service = map (
      { option, server, ... }:
      refuse "${option} refers to a variable of metamcp.service, which the unit of the server does not have: put the value into a file and name that in ${server}.credentials, or set ${server}.isolation = \"spawn\"."
    ) (lib.filter ({ isUnit, value, ... }: isUnit && lib.hasPrefix "env:" value) inventory.values);

    sandbox-without-a-unit = map (
      { place, server, ... }:
      refuse "${place}.sandbox has no effect, because ${
        if server.command == null then
          "metamcp does not start the server"
        else
          "the server runs in the sandbox of metamcp.service"
      }: remove it${
        lib.optionalString (server.command != null) ", or set ${place}.isolation = \"unit\""
      }."
    ) (lib.filter ({ server, isUnit, ... }: !isUnit && server.sandbox or sandbox != sandbox) declared);

    # What is of no use to a server that is reached in this way.
    without-effect =
      let
        ofProgram = lib.genAttrs [ "args" "cwd" "env" "extraPackages" ] (
          _: "metamcp does not start the server: remove it."
        );
        useless =
          server:
          if server.command != null then
            { headers = "a program gets none: remove it, or use env."; }
          else if server.url != null then
            ofProgram
          else
            ofProgram
            // {
              credentials = "the server is a unit that metamcp only connects to: remove it, and give the secrets to that unit (LoadCredential=).";
              headers = "a socket has none: remove it.";
            };
      in
      lib.concatMap (
        { place, server, ... }@found:
        lib.optionals (hasOneWay found) (
          lib.mapAttrsToList (key: reason: refuse "${place}.${key} has no effect, because ${reason}") (
            lib.filterAttrs (
              key: _:
              !lib.elem server.${key} [
                null
                [ ]
                { }
              ]
            ) (useless server)
          )
        )
      ) declared
      ++
        map
          (
            { option, ... }:
            refuse "${option}.sandbox.allowedAddresses has no effect, because the server has no network: set ${option}.sandbox.network = true, or remove it."
          )
          (
            lib.filter (
              { server, isUnit, ... }:
              isUnit && server.sandbox.allowedAddresses != null && !server.sandbox.network
            ) declared
          );

    # DynamicUser= takes over a user of that name who is there, and does not start
    # where there is only a group.
    user-taken =
      let
        taken =
          known:
          lib.filter (
            {
              server,
              name,
              isUnit,
              ...
            }:
            isUnit && known != null && server.sandbox.user == null && known ? ${userName name}
          ) declared;
      in
      map (
        { option, name, ... }:
        refuse "${option} is to run as ${userName name}, a user that systemd makes, and users.users has one of that name: rename the server or the user, or set ${option}.sandbox.user."
      ) (taken users)
      ++ map (
        { option, name, ... }:
        refuse "${option} is to run as ${userName name}, a user and group that systemd makes, and users.groups has one of that name: rename the server or the group, or set ${option}.sandbox.user."
      ) (lib.filter ({ name, ... }: !(users != null && users ? ${userName name})) (taken groups))
      ++
        lib.optional
          (
            cfg.user or null == null
            && (users != null && users ? metamcp-service || groups != null && groups ? metamcp-service)
          )
          (
            refuse "services.metamcp.user is null, for metamcp-service, a user and group that systemd makes, and users.users or users.groups has one of that name: rename it, or set services.metamcp.user."
          );

    # systemd refuses to start what has no working directory.
    cwd-hidden =
      map
        (
          { option, server, ... }:
          refuse "${option}.cwd is ${server.cwd}, which is hidden from the server: add it to ${option}.sandbox.readOnlyPaths or writablePaths, or set ${option}.sandbox.home to \"${homeThatShows server.cwd}\"."
        )
        (
          lib.filter (
            { server, isUnit, ... }:
            isUnit && server.cwd != null && isHidden server.sandbox server.cwd
          ) declared
        );

    user-unknown = map (
      { option, value, ... }:
      refuse "${option} is ${value}, and there is no such user: declare users.users.${value}."
    ) (strangers "user" users);

    group-unknown = map (
      { option, value, ... }:
      refuse "${option} is ${value}, and there is no such group: declare users.groups.${value}."
    ) (strangers "group" groups);
  };
in
{
  assertions = lib.concatLists (lib.attrValues assertions);
  warnings = lib.concatLists (lib.attrValues warnings);

  # What each is about, so that the tests can tell that none is without one.
  kinds = lib.attrNames assertions ++ lib.attrNames warnings;
}
