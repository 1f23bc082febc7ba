# What an evaluation warns about: what works, and not as one would wish.  For each
# there is something to write instead, of which nothing is said.
{ lib }:
# services.metamcp, of NixOS or of Home Manager.
cfg:
let
  inherit (cfg) settings;
  inherit (settings) listen pool;

  looks = import ./secret-lookalikes.nix { inherit lib; };
  inherit (import ./types.nix { inherit lib; }) milliseconds;
  inherit (import ./inventory.nix { inherit lib; } cfg)
    effective
    hasOneWay
    isDeclared
    sandbox
    servers
    values
    withCommand
    ;

  # -------------------------------------------------------------------- alike
  # Lists of two servers and more of which `key` says the same, null for none.
  alike =
    key: candidates:
    lib.filter (group: builtins.length group > 1) (
      lib.attrValues (lib.groupBy key (lib.filter (found: key found != null) candidates))
    );
  options = lib.concatMapStringsSep " and " ({ option, ... }: option);
  spoken = { name, ... }: builtins.replaceStrings [ "-" ] [ "_" ] (lib.toLower name);
  # One name in two places is another matter.
  haveNames = group: lib.any ({ name, ... }: name != (builtins.head group).name) group;
  # What is run or asked, whatever it is called.
  what =
    {
      name,
      isUnit,
      server,
      ...
    }@found:
    if !hasOneWay found then
      null
    else
      builtins.unsafeDiscardStringContext (
        builtins.toJSON {
          inherit (server)
            args
            command
            cwd
            env
            headers
            socket
            url
            ;
          credentials = lib.mapAttrs (_: toString) (server.credentials or { });
          # In another sandbox it is another server, and so is one that keeps files.
          unit =
            if !isUnit || server.sandbox == sandbox then
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
  connections = import ./connections.nix;
  connectionsMax = lib.foldl' (sum: server: sum + connections server) 0 (
    lib.attrValues settings.servers ++ lib.attrValues settings.provision.servers
  );
  # A request waits no longer than for the shorter of the two.
  inherit (settings.service) request_timeout max_total_timeout;
  patience =
    if milliseconds request_timeout < milliseconds max_total_timeout then
      "request_timeout"
    else
      "max_total_timeout";

  # ------------------------------------------------------------------ fetched
  # Servers whose command fetches a program when it starts.
  fetching = lib.filter ({ found, ... }: found != null) (
    map (
      { server, ... }@declared: declared // { found = looks.fetched server.command server.args; }
    ) withCommand
  );
  # Where such a program is kept, if not below the home.
  caches = [
    "BUN_INSTALL_CACHE_DIR"
    "HOME"
    "NPM_CONFIG_CACHE"
    "PIPX_HOME"
    "UV_CACHE_DIR"
    "XDG_CACHE_HOME"
    "npm_config_cache"
  ];
  missing =
    { server, ... }:
    lib.optional (!server.sandbox.network) "network"
    ++ lib.optional (
      !server.sandbox.state && !lib.any (variable: server.env ? ${variable}) caches
    ) "state";

  # The longest name of which the reference servers' longest tool,
  # list_allowed_directories with 24 characters, is still shown as it is: clients
  # allow 64, of which mcp__metamcp__NAME__ takes 16 besides the name.
  nameMax = 24;
in
{
  secret-in-the-open = map (
    { option, server, ... }:
    "${option} looks like a secret, and every user can read it in the Nix store: put it into a file, ${
      if isDeclared option then
        "and name that in ${server}.credentials"
      else
        "name that in services.metamcp.credentials, and refer to it with \"credential:NAME\""
    }."
  ) (lib.filter ({ key, value, ... }: looks.isSecret key value) values);

  secret-argument = map (
    { option, ... }:
    "${option}.args has what looks like a secret, and every user can read it in the Nix store and among the processes: give it by an environment variable, from a file in ${
      if isDeclared option then "${option}.credentials" else "services.metamcp.credentials"
    }."
  ) (lib.filter ({ server, ... }: looks.haveSecret server.args) withCommand);

  secret-url = map (
    { option, ... }:
    "${option}.url has what looks like a secret, and every user can read it in the Nix store: give it by a header, from a file in ${
      if isDeclared option then "${option}.credentials" else "services.metamcp.credentials"
    }."
  ) (lib.filter ({ server, ... }: server.url != null && looks.hasSecret server.url) servers);

  fetched-unpinned = map (
    { option, found, ... }:
    "${option}.command fetches ${found.name} in whatever version is the newest, which makes it slow to start and different from one day to the next: ${lib.optionalString (isDeclared option) "set `package` to one of nixpkgs in place of `command` and its `args`, or "}say the version, as in \"${found.unversioned}${
      if found.isContainer then ":" else "@"
    }1.2.3\"."
  ) (lib.filter ({ found, ... }: !found.isPinned) fetching);

  fetched-in-a-sandbox =
    map
      (
        { option, found, ... }@server:
        "${option}.command fetches ${found.name} when it starts, and its sandbox leaves it ${
          lib.concatMapStringsSep " and " (
            lack: if lack == "network" then "no network to do so" else "nowhere to keep it"
          ) (missing server)
        }: set `package` to one of nixpkgs in place of `command` and its `args`, or ${
          lib.concatMapStringsSep " and " (lack: "${option}.sandbox.${lack} = true") (missing server)
        }."
      )
      (
        lib.filter (
          { isUnit, found, ... }@server: isUnit && !found.isContainer && missing server != [ ]
        ) fetching
      );

  browser-shared =
    map
      (
        { option, ... }:
        "${option} drives a browser, and its clients would share the pages of it: set ${option}.sharing = \"session\" for a browser each, or \"exclusive\" for one call at a time."
      )
      (
        lib.filter (
          { name, server, ... }:
          (effective name).sharing == "shared" && looks.drivesBrowser server.command server.args
        ) withCommand
      );

  twice = map (
    group:
    "${options group} are the same server, which so is started and asked once for each: keep one, which all clients share."
  ) (alike what servers);

  names-alike = map (
    group:
    "${options group} differ in nothing but capitals, - and _, so that people and models take one for the other: rename one."
  ) (lib.filter haveNames (alike spoken servers));

  name-long =
    map
      (
        { name, option, ... }:
        let
          length = builtins.stringLength name;
        in
        "${option} has a name of ${toString length} characters, which leaves ${toString (48 - length)} of the 64 that clients allow for the names of its tools (mcp__metamcp__NAME__TOOL), and longer ones are cut: use a name of at most ${toString nameMax}, or set services.metamcp.settings.listen.root = \"meta\"."
      )
      (
        lib.filter (
          { name, ... }:
          listen.root == "direct" && builtins.stringLength name > nameMax && builtins.stringLength name <= 40
        ) servers
      );

  reserve-without-need =
    lib.optional (pool.reserve_size > 0 && connectionsMax <= pool.size)
      "services.metamcp.settings.pool.reserve_size has no effect, because all servers together have at most ${toString connectionsMax} connections, and services.metamcp.settings.pool.size is ${toString pool.size}: remove it, or make pool.size smaller.";

  reserve-too-late =
    lib.optional
      (
        pool.reserve_size > 0
        && milliseconds pool.reserve_timeout >= milliseconds settings.service.${patience}
      )
      "services.metamcp.settings.pool.reserve_size has no effect, because a request waits for at most ${settings.service.${patience}} (service.${patience}), and may have one of the reserve after ${pool.reserve_timeout}: make services.metamcp.settings.pool.reserve_timeout shorter.";
}
