# The warnings of an evaluation, for configurations that work but have a problem. Each
# warning names a remedy, which causes no warning itself.
{ lib }:
# services.metamcp, of NixOS or of Home Manager.
cfg:
let
  inherit (cfg) settings;
  inherit (settings) listen pool;

  inherit (import ./secret-lookalikes.nix { inherit lib; }) argumentsHaveSecret isSecret urlHasSecret;
  inherit (import ./fetched-programs.nix { inherit lib; }) fetched;
  inherit (import ./browser-servers.nix { inherit lib; }) drivesBrowser;
  inherit (import ./types.nix { inherit lib; }) milliseconds;
  inherit (import ./declared-servers.nix { inherit lib; } cfg)
    defaultSandbox
    effective
    hasOneTransport
    isDeclared
    servers
    values
    withCommand
    ;

  # --------------------------------------------------------------- duplicates
  # The groups of two or more servers with the same `key`. A server whose key is null
  # is in no group.
  groupsWithSame =
    key: candidates:
    lib.filter (group: builtins.length group > 1) (
      lib.attrValues (lib.groupBy key (lib.filter (entry: key entry != null) candidates))
    );
  optionNames = lib.concatMapStringsSep " and " ({ option, ... }: option);
  normalizedName = { name, ... }: builtins.replaceStrings [ "-" ] [ "_" ] (lib.toLower name);
  # The same name in two options is not a similar name.
  haveDifferentNames = group: lib.any ({ name, ... }: name != (builtins.head group).name) group;
  # The program or endpoint of a server, without the name of the server.
  implementation =
    {
      name,
      isUnit,
      server,
      ...
    }@entry:
    if !hasOneTransport entry then
      null
    else
      builtins.unsafeDiscardStringContext (
        builtins.toJSON {
          inherit (server)
            args
            auth
            command
            cwd
            env
            forward_headers
            headers
            socket
            tls
            url
            ;
          credentials = lib.mapAttrs (_: toString) (server.credentials or { });
          # A server in another sandbox, or with its own state, is a different server.
          unit =
            if !isUnit || server.sandbox == defaultSandbox then
              null
            else
              server.sandbox
              // {
                readOnlyPaths = map toString server.sandbox.readOnlyPaths;
                state = if server.sandbox.state then name else null;
                writablePaths = map toString server.sandbox.writablePaths;
              };
        }
      );

  # --------------------------------------------------------------------- pool
  connectionLimit = import ./connection-limit.nix;
  connectionsMax = lib.foldl' (sum: server: sum + connectionLimit server) 0 (
    lib.attrValues settings.servers ++ lib.attrValues settings.provision.servers
  );
  # A request waits at most for the shorter of the two timeouts.
  inherit (settings.service) request_timeout max_total_timeout;
  shorterTimeout =
    if milliseconds request_timeout < milliseconds max_total_timeout then
      "request_timeout"
    else
      "max_total_timeout";

  # --------------------------------------------------------------- downloads
  # The servers whose command downloads a program when it starts.
  downloading = lib.filter ({ download, ... }: download != null) (
    map ({ server, ... }@entry: entry // { download = fetched server.command server.args; }) withCommand
  );
  # Variables that name a directory for downloaded programs.
  cacheVariables = [
    "BUN_INSTALL_CACHE_DIR"
    "HOME"
    "NPM_CONFIG_CACHE"
    "PIPX_HOME"
    "UV_CACHE_DIR"
    "XDG_CACHE_HOME"
    "npm_config_cache"
  ];
  missingPermissions =
    { server, ... }:
    lib.optional (!server.sandbox.network) "network"
    ++ lib.optional (
      !server.sandbox.state && !lib.any (variable: server.env ? ${variable}) cacheVariables
    ) "state";

  # The longest server name with which clients see the longest tool name of the
  # reference servers unchanged: list_allowed_directories, 24 characters. Clients allow
  # 64 characters, and mcp__metamcp__NAME__ takes 16 in addition to the name.
  nameMax = 24;
in
{
  secret-value = map (
    { option, server, ... }:
    "${option} looks like a secret, and every user can read it in the Nix store: put it into a file, ${
      if isDeclared option then
        "and name the file in ${server}.credentials"
      else
        "name the file in services.metamcp.credentials, and refer to it with \"credential:NAME\""
    }."
  ) (lib.filter ({ key, value, ... }: isSecret key value) values);

  secret-argument = map (
    { option, ... }:
    "${option}.args seems to contain a secret, and every user can read it in the Nix store and in the list of processes: pass it in an environment variable, from a file in ${
      if isDeclared option then "${option}.credentials" else "services.metamcp.credentials"
    }."
  ) (lib.filter ({ server, ... }: argumentsHaveSecret server.args) withCommand);

  secret-url = map (
    { option, ... }:
    "${option}.url seems to contain a secret, and every user can read it in the Nix store: send it in a header, from a file in ${
      if isDeclared option then "${option}.credentials" else "services.metamcp.credentials"
    }."
  ) (lib.filter ({ server, ... }: server.url != null && urlHasSecret server.url) servers);

  secret-proxy =
    map
      (
        { option, ... }:
        "${option} contains a login, and every user can read it in the Nix store: set it to \"environment\", and set HTTPS_PROXY in a file of systemd.services.metamcp.serviceConfig.EnvironmentFile."
      )
      (
        lib.filter ({ proxy, ... }: proxy != null && urlHasSecret proxy) (
          map (
            { option, server, ... }:
            {
              inherit (server) proxy;
              option = "${option}.proxy";
            }
          ) servers
          ++ [
            {
              inherit (settings.service) proxy;
              option = "services.metamcp.settings.service.proxy";
            }
          ]
        )
      );

  unpinned-download = map (
    { option, download, ... }:
    "${option}.command downloads ${download.name} without a pinned version, so that it starts slowly and may change with every start: ${lib.optionalString (isDeclared option) "set `package` to a package of nixpkgs instead of `command` and `args`, or "}pin the version, as in \"${download.unversioned}${
      if download.isContainer then ":" else "@"
    }1.2.3\"."
  ) (lib.filter ({ download, ... }: !download.isPinned) downloading);

  download-in-a-sandbox =
    map
      (
        { option, download, ... }@entry:
        "${option}.command downloads ${download.name} when it starts, but its sandbox has ${
          lib.concatMapStringsSep " and " (
            permission: if permission == "network" then "no network" else "no directory to keep it"
          ) (missingPermissions entry)
        }: set `package` to a package of nixpkgs instead of `command` and `args`, or set ${
          lib.concatMapStringsSep " and " (permission: "${option}.sandbox.${permission} = true") (
            missingPermissions entry
          )
        }."
      )
      (
        lib.filter (
          { isUnit, download, ... }@entry: isUnit && !download.isContainer && missingPermissions entry != [ ]
        ) downloading
      );

  shared-browser =
    map
      (
        { option, ... }:
        "${option} drives a browser, and all clients would share its pages: set ${option}.sharing = \"session\" for one browser per client session, or \"exclusive\" for one call at a time."
      )
      (
        lib.filter (
          { name, server, ... }:
          (effective name).sharing == "shared" && drivesBrowser server.command server.args
        ) withCommand
      );

  duplicate-server = map (
    group:
    "${optionNames group} declare the same server, so that metamcp starts and queries it once for each: keep one of them; all clients share it."
  ) (groupsWithSame implementation servers);

  similar-names = map (
    group:
    "${optionNames group} differ only in capitals, - and _, so that people and models confuse them: rename one."
  ) (lib.filter haveDifferentNames (groupsWithSame normalizedName servers));

  long-name =
    map
      (
        { name, option, ... }:
        let
          length = builtins.stringLength name;
        in
        "${option} has a name of ${toString length} characters, which leaves ${toString (48 - length)} of the 64 that clients allow for the names of its tools (mcp__metamcp__NAME__TOOL), so that metamcp shortens longer names: use a name of at most ${toString nameMax}, or set services.metamcp.settings.listen.root = \"meta\"."
      )
      (
        lib.filter (
          { name, ... }:
          listen.root == "direct" && builtins.stringLength name > nameMax && builtins.stringLength name <= 40
        ) servers
      );

  unneeded-reserve =
    lib.optional (pool.reserve_size > 0 && connectionsMax <= pool.size)
      "services.metamcp.settings.pool.reserve_size has no effect, because all servers together have at most ${toString connectionsMax} connections, and services.metamcp.settings.pool.size is ${toString pool.size}: remove it, or reduce pool.size.";

  unisolated-scripts =
    lib.optional (settings.execute.enabled && settings.execute.profile == "dev")
      "services.metamcp.settings.execute.profile is \"dev\", so that a script of a client runs without isolation and may do all that the service may do: set it to \"standard\", or debug only metamcp itself with \"dev\".";

  late-reserve =
    lib.optional
      (
        pool.reserve_size > 0
        && milliseconds pool.reserve_timeout >= milliseconds settings.service.${shorterTimeout}
      )
      "services.metamcp.settings.pool.reserve_size has no effect, because a request waits at most ${
        settings.service.${shorterTimeout}
      } (service.${shorterTimeout}) but may use the reserve only after ${pool.reserve_timeout}: reduce services.metamcp.settings.pool.reserve_timeout.";
}
