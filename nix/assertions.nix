# The assertions and warnings of an evaluation. Each message names the option and
# ends with the remedy. A warning without a remedy is left out.
#
# `metamcp check` reports all other mistakes in services.metamcp.settings while the
# system is built.
{ lib }:
{
  # services.metamcp, of NixOS or of Home Manager.
  cfg,
  # users.users and users.groups; null for a user's service, which has no other user.
  users ? null,
  groups ? null,
  # systemd.services, and its definitions with their files; empty for a user's service.
  services ? { },
  serviceDefinitions ? [ ],
}:
let
  inherit (cfg) settings;
  inherit (settings) listen;

  inherit (import ./types.nix { inherit lib; }) isName nameRule;
  inherit (import ./sandbox.nix { inherit lib; }) homeThatShows isHidden userName;
  warnings = import ./warnings.nix { inherit lib; } cfg;
  inventory = import ./declared-servers.nix { inherit lib; } cfg;
  conflicts = import ./service-conflicts.nix { inherit lib; } {
    inherit cfg services;
    definitions = serviceDefinitions;
  };
  inherit (inventory)
    declared
    effective
    defaultSandbox
    hasOneTransport
    isDeclared
    servers
    upstream
    ;

  addressOf = (import ./local-address.nix { inherit lib; }).listenAddress;
  inherit (addressOf listen.http) isLoopback isOwnUrl;
  # Home Manager has no option for the metrics besides those of the file.
  metricsFirewall =
    cfg ? metrics && cfg.metrics.enable && cfg.metrics.openFirewall && listen.metrics != null;

  # True if a command is `metamcp stdio`, which connects a client to this service.
  isBridge =
    { command, args, ... }:
    command != null
    && builtins.match "(.*/)?metamcp" command != null
    && lib.elem "stdio" args
    && !lib.any (arg: builtins.match "--(socket|standalone)(=.*)?" arg != null) args;

  # ------------------------------------------------------------------ secrets
  isCredential = lib.hasPrefix "credential:";
  isInStore = file: builtins.isPath file || lib.hasPrefix builtins.storeDir (toString file);

  # Every value that may refer to a credential, with its option.
  values = ownValues ++ inventory.values ++ inventory.endpointValues;
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

  # Every file with a secret, with the option that names it. The credentials of
  # servers without a unit are also in services.metamcp.credentials.
  secretFiles =
    lib.mapAttrsToList (name: file: {
      inherit file;
      option = "services.metamcp.credentials.${name}";
    }) (removeAttrs cfg.credentials (map ({ credential, ... }: credential) serverSecrets))
    ++ serverSecrets;
  serverSecrets = lib.concatMap (
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
  # The options that name a user or group that does not exist.
  unknownNames =
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

  hasTls = server: lib.any (value: value != null) (lib.attrValues server.tls);

  require = assertion: message: { inherit assertion message; };
  refuse = require false;

  assertions = {
    unprotected-address = [
      (require (isLoopback || listen.tls != null && listen.token != null)
        "services.metamcp.settings.listen.http is ${listen.http}, which is not a loopback address, so that metamcp would serve everyone on the network: set services.metamcp.settings.listen.tls and services.metamcp.settings.listen.token, or listen on 127.0.0.1."
      )
    ];

    firewall-of-loopback = [
      (require (cfg.openFirewall or false -> !isLoopback)
        "services.metamcp.openFirewall opens the port of ${listen.http}, but only this host can reach that address: remove it, or set services.metamcp.settings.listen.http to a network address, with listen.tls and listen.token."
      )
    ];

    metrics-firewall-of-loopback = [
      (require (metricsFirewall -> !(addressOf listen.metrics).isLoopback)
        "services.metamcp.metrics.openFirewall opens the port of ${toString listen.metrics}, but only this host can reach that address: remove it, or set services.metamcp.metrics.listenAddress to a network address."
      )
    ];

    root-view = [
      (require
        (
          lib.elem listen.root [
            "direct"
            "meta"
          ]
          || settings.servers ? ${lib.removePrefix "passthrough:" listen.root}
        )
        "services.metamcp.settings.listen.root is ${listen.root}, but this server does not exist: declare it in services.metamcp.servers, or use \"direct\"."
      )
    ];

    invalid-name = map (
      { name, option, ... }:
      require (isName name) "${option} is not a valid server name: use ${nameRule}."
    ) servers;

    transport =
      map (
        { option, ... }@entry:
        require (hasOneTransport entry) "${option} needs exactly one of command, url and socket: set ${lib.optionalString (isDeclared option) "`package` or "}`command` for a program to run, `url` for an HTTP endpoint, or `socket` for a unit to connect to."
      ) servers
      ++ map (
        { name, option, ... }@entry:
        require (hasOneTransport entry -> hasOneTransport { server = effective name; })
          "services.metamcp.settings.servers.${name} gives ${option} a second transport: remove one of the two."
      ) declared;

    provisioned-and-declared = map (
      name:
      require (!(settings.servers ? ${name}))
        "services.metamcp.settings.provision.servers.${name} has no effect, because services.metamcp.${
          lib.optionalString (!(cfg.servers ? ${name})) "settings."
        }servers.${name} declares the server already: remove or rename one of the two."
    ) (lib.attrNames settings.provision.servers);

    own-url = map (
      { option, server, ... }:
      require (server.url != null -> !isOwnUrl server.url)
        "${option}.url is ${toString server.url}, where metamcp itself listens: set it to the address of the server, or set another port in services.metamcp.settings.listen.http."
    ) servers;

    own-command = map (
      { option, server, ... }:
      require (!isBridge server)
        "${option}.command is metamcp's own bridge to this service, so that metamcp would call itself: remove the server, or declare the server behind the bridge."
    ) servers;

    own-socket = map (
      { option, server, ... }:
      require (
        server.socket == null || server.socket != listen.control
      ) "${option}.socket is metamcp's own control socket: set it to the socket of the server's unit."
    ) servers;

    # If another service has the name of the unit, unit-conflict reports it instead.
    own-unit = lib.optional (upstream != null && !conflicts.isTaken) (
      require
        (
          !lib.elem (upstream.unit or null) [
            "metamcp"
            "metamcp.service"
          ]
        )
        "services.metamcp.upstream.unit is metamcp's own unit: set it to the unit of the upstream, or to null. If the unit of the upstream has this name too, rename it, for example to mcp-aggregator.service."
    );

    unit-conflict = map refuse conflicts.unit-conflict;
    directory-conflict = map refuse conflicts.directory-conflict;

    unknown-credential = map (
      { option, value, ... }@entry:
      let
        name = lib.removePrefix "credential:" value;
      in
      require (isCredential value -> cfg.credentials ? ${name})
        "${option} refers to the credential ${name}, which does not exist: set services.metamcp.credentials.${name} to the path of a file that holds the secret${
          lib.optionalString (isDeclared (entry.server or "")) ", or use ${entry.server}.credentials"
        }."
    ) values;

    credential-in-the-store = map (
      { option, file, ... }:
      require (!isInStore file)
        "${option} would put the secret into the Nix store, where every user can read it: set it to the path of a file outside the store, as a string (\"/run/secrets/NAME\")."
    ) secretFiles;

    tls-key-in-the-store =
      map
        (
          { option, value, ... }:
          require (!isInStore value)
            "${option} is in the Nix store, where every user can read it: set it to the path of a file outside the store, or to \"credential:NAME\" for a file in services.metamcp.credentials."
        )
        (
          lib.filter ({ option, ... }: lib.hasSuffix ".tls.key" option) (
            ownValues ++ inventory.endpointValues
          )
        );

    tls-without-https = map (
      { option, server, ... }:
      require (server.url == null || lib.hasPrefix "https://" server.url || !hasTls server)
        "${option}.tls has no effect on the http:// address in ${option}.url: remove it, or set the https:// address."
    ) servers;

    # The start script of a unit exports each variable.
    invalid-variable-name = lib.concatMap (
      { option, server, ... }:
      map (
        key:
        require (builtins.match "[A-Za-z_][A-Za-z0-9_]*" key != null)
          "${option} sets the environment variable ${key}, which is not a valid name: use letters, digits and _, and do not begin with a digit."
      ) (lib.attrNames (server.env // server.credentials))
    ) (lib.filter ({ isUnit, ... }: isUnit) declared);

    credential-and-value = map (
      {
        option,
        key,
        server,
        ...
      }:
      require (
        !(server.env ? ${key}) && !(server.headers ? ${key})
      ) "${option} is also set in env or headers: remove one of the two."
    ) serverSecrets;

    variable-of-the-service = map (
      { option, server, ... }:
      refuse "${option} refers to a variable of metamcp.service, which the unit of the server does not have: write the value into a file and name the file in ${server}.credentials, or set ${server}.isolation = \"spawn\"."
    ) (lib.filter ({ isUnit, value, ... }: isUnit && lib.hasPrefix "env:" value) inventory.values);

    sandbox-without-a-unit =
      map
        (
          { place, server, ... }:
          refuse "${place}.sandbox has no effect, because ${
            if server.command == null then
              "metamcp does not start the server"
            else
              "the server runs in the sandbox of metamcp.service"
          }: remove it${
            lib.optionalString (server.command != null) ", or set ${place}.isolation = \"unit\""
          }."
        )
        (
          lib.filter (
            { server, isUnit, ... }: !isUnit && server.sandbox or defaultSandbox != defaultSandbox
          ) declared
        );

    # Options that the transport of a server makes useless.
    without-effect =
      let
        programOptions = lib.genAttrs [ "args" "cwd" "env" "extraPackages" ] (
          _: "metamcp does not start the server: remove it."
        );
        endpointOptions = lib.genAttrs [ "auth" "forward_headers" "proxy" "tls" ] (
          _: "it belongs to a server with a `url`: remove it."
        );
        useless =
          server:
          if server.command != null then
            endpointOptions // { headers = "a program receives no headers: remove it, or use env."; }
          else if server.url != null then
            programOptions
          else
            programOptions
            // endpointOptions
            // {
              credentials = "the server is a unit that metamcp only connects to: remove it, and give the secrets to that unit (LoadCredential=).";
              headers = "a socket carries no headers: remove it.";
            };
      in
      lib.concatMap (
        { place, server, ... }@entry:
        lib.optionals (hasOneTransport entry) (
          lib.mapAttrsToList (key: reason: refuse "${place}.${key} has no effect, because ${reason}") (
            lib.filterAttrs (
              key: _:
              (key != "tls" || hasTls server)
              && !lib.elem server.${key} [
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

    # With DynamicUser=, systemd would run the unit as an existing user of that name,
    # and would not start it if only a group has the name.
    user-conflict =
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
        refuse "${option} would run as the dynamic user ${userName name}, but users.users declares a user of this name: rename the server or the user, or set ${option}.sandbox.user."
      ) (taken users)
      ++ map (
        { option, name, ... }:
        refuse "${option} would run as the dynamic user ${userName name}, but users.groups declares a group of this name: rename the server or the group, or set ${option}.sandbox.user."
      ) (lib.filter ({ name, ... }: !(users != null && users ? ${userName name})) (taken groups))
      ++
        lib.optional
          (
            cfg.user or null == null
            && (users != null && users ? metamcp-service || groups != null && groups ? metamcp-service)
          )
          (
            refuse "services.metamcp.user is null, so that the service would run as the dynamic user metamcp-service, but users.users or users.groups declares this name: rename it there, or set services.metamcp.user."
          );

    # systemd does not start a unit whose working directory it cannot enter.
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

    unknown-user = map (
      { option, value, ... }:
      refuse "${option} is ${value}, but this user does not exist: declare users.users.${value}."
    ) (unknownNames "user" users);

    unknown-group = map (
      { option, value, ... }:
      refuse "${option} is ${value}, but this group does not exist: declare users.groups.${value}."
    ) (unknownNames "group" groups);
  };
in
{
  assertions = lib.concatLists (lib.attrValues assertions);
  warnings = lib.concatLists (lib.attrValues warnings);

  # The kinds of assertions and warnings. The tests check that each has a case.
  kinds = lib.attrNames assertions ++ lib.attrNames warnings;
}
