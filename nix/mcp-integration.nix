# The servers that Home Manager's programs.mcp.servers declares for any client,
# as services.metamcp.servers has them.  `metamcp import` reads the same shapes
# and decides alike: a value that is `{env:NAME}` or `{file:PATH}` as a whole is
# a reference, and what is known only later has no place in a command line.
{ lib }:
{
  # The home directory, for `{file:~/…}`.
  home,
  # Whether a URL is that of this service.
  isOwnUrl,
  # programs.mcp.servers.
  declared,
  # services.metamcp.servers, with these among them: what it says takes the place
  # of what is said here.
  final,
}:
let
  inherit (import ./types.nix { inherit lib; }) isName nameRule;
  hasToken = text: lib.hasInfix "{env:" text || lib.hasInfix "{file:" text;
  asDefault = lib.mapAttrs (_: lib.mkDefault);

  # What a value of env or headers is here: one of literal, file and problem.
  read =
    value:
    let
      variable = builtins.match "\\{env:([A-Za-z_][A-Za-z0-9_]*)}" value;
      file = builtins.match "\\{file:([^}]+)}" value;
    in
    if builtins.isAttrs value then
      { inherit (value) file; }
    else if variable != null then
      { literal = "env:${lib.head variable}"; }
    else if file != null then
      { file = lib.replaceStrings [ "~/" ] [ "${home}/" ] (lib.head file); }
    else if hasToken value then
      { problem = "is put together of parts that are known only later"; }
    else if lib.hasPrefix "env:" value || lib.hasPrefix "credential:" value then
      { problem = "would be taken for a reference"; }
    else
      { literal = value; };

  convert =
    name: server:
    let
      url = if server.url or null != null then server.url else server.serverUrl or null;
      command = server.command or null;
      args = server.args or [ ];
      table = if url != null then "headers" else "env";
      # Nothing of this is of use to a server that is to be reached in another way.
      isReplaced = lib.any (way: final.${name}.${way} != null) [
        "socket"
        (if url != null then "command" else "url")
      ];
      unlessReplaced = lib.mapAttrs (_: lib.mkIf (!isReplaced));
      values = lib.mapAttrs (_: read) (server.${table} or { });
      only =
        kind: lib.mapAttrs (_: value: value.${kind}) (lib.filterAttrs (_: value: value ? ${kind}) values);

      refused =
        if !isName name then
          "has a name that metamcp does not take: rename it to ${nameRule}"
        else if url != null && lib.hasPrefix "https://" url then
          "is at an https:// address, which metamcp cannot connect to yet: set services.metamcp.servers.${name}.url to the http:// address of a TLS proxy on this host${
            lib.optionalString (server.headers or { } != { }) ", and its headers beside it"
          }"
        else if url != null && (!lib.hasPrefix "http://" url || hasToken url) then
          "has an address that metamcp cannot connect to: set services.metamcp.servers.${name}.url to one that begins with http:// and is written out"
        else if command != null && lib.any hasToken ([ command ] ++ args) then
          "has a {env:…} or {file:…} in its command line, where metamcp puts nothing in: declare it in services.metamcp.servers.${name}, with a program that takes the value from a variable"
        else
          null;
    in
    {
      inherit refused;
      isOff = server.enabled or null == false || server.disabled or null == true;
      isOwn =
        if url != null then
          isOwnUrl url
        else
          command != null && baseNameOf command == "metamcp" && lib.elem "stdio" args;
      inherit table;
      problems = lib.optionalAttrs (!isReplaced) (only "problem");
      server = unlessReplaced (
        {
          ${table} = asDefault (removeAttrs (only "literal") (lib.attrNames final.${name}.credentials));
          credentials = asDefault (only "file");
        }
        // (
          if url != null then
            { url = lib.mkDefault url; }
          else
            asDefault { cwd = server.cwd or null; }
            // lib.mapAttrs (_: lib.mkIf (final.${name}.package == null)) (asDefault {
              inherit args command;
            })
        )
      );
    };

  # Those that are in use, and not this service itself under another name.
  wanted = lib.filterAttrs (_: found: !found.isOff && !found.isOwn) (lib.mapAttrs convert declared);
in
{
  servers = lib.mapAttrs (_: found: found.server) (
    lib.filterAttrs (_: found: found.refused == null) wanted
  );

  # What cannot be taken over, but for what `final` says of it in its own words.
  warnings = lib.concatLists (
    lib.mapAttrsToList (
      name: found:
      if found.refused != null then
        lib.optional (!(final ? ${name}))
          "programs.mcp.servers.${name} ${found.refused}, or leave it to its clients with services.metamcp.mcpIntegration.exclude."
      else
        lib.concatLists (
          lib.mapAttrsToList (
            key: problem:
            lib.optional (!(final.${name}.${found.table} ? ${key}) && !(final.${name}.credentials ? ${key}))
              "programs.mcp.servers.${name}.${found.table}.${key} ${problem}, and is left out: write the whole value into a file, and set services.metamcp.servers.${name}.credentials.${key} to its path."
          ) found.problems
        )
    ) wanted
  );
}
