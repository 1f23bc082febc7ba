# Converts the servers in Home Manager's programs.mcp.servers, which are for any client,
# to services.metamcp.servers. `metamcp import` converts the same formats by the same
# rules. A value that is `{env:NAME}` or `{file:PATH}` as a whole is a reference. A
# command line cannot contain a reference.
{ lib }:
{
  # The home directory, for `{file:~/…}`.
  home,
  # True if a URL is the address of this service.
  isOwnUrl,
  # programs.mcp.servers.
  declared,
  # services.metamcp.servers, which include the converted servers. Its own definitions
  # take precedence over the converted ones.
  final,
}:
let
  inherit (import ./types.nix { inherit lib; }) isName nameRule;
  hasToken = text: lib.hasInfix "{env:" text || lib.hasInfix "{file:" text;
  asDefault = lib.mapAttrs (_: lib.mkDefault);

  # Converts a value of env or headers to one of literal, file and problem.
  convertValue =
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
      { problem = "contains a reference and other text, which metamcp cannot combine"; }
    else if lib.hasPrefix "env:" value || lib.hasPrefix "credential:" value then
      { problem = "would be read as a reference"; }
    else
      { literal = value; };

  convert =
    name: server:
    let
      url = if server.url or null != null then server.url else server.serverUrl or null;
      command = server.command or null;
      args = server.args or [ ];
      table = if url != null then "headers" else "env";
      # True if `final` gives the server another transport, so that this entry has no
      # effect.
      isReplaced = lib.any (transport: final.${name}.${transport} != null) [
        "socket"
        (if url != null then "command" else "url")
      ];
      unlessReplaced = lib.mapAttrs (_: lib.mkIf (!isReplaced));
      values = lib.mapAttrs (_: convertValue) (server.${table} or { });
      only =
        kind: lib.mapAttrs (_: value: value.${kind}) (lib.filterAttrs (_: value: value ? ${kind}) values);

      refused =
        if !isName name then
          "has a name that metamcp does not accept: rename it to ${nameRule}"
        else if url != null && (builtins.match "https?://.*" url == null || hasToken url) then
          "has an address that metamcp cannot connect to: set services.metamcp.servers.${name}.url to an address that begins with http:// or https:// and contains no reference"
        else if command != null && lib.any hasToken ([ command ] ++ args) then
          "has a {env:…} or {file:…} in its command line, where metamcp replaces no references: declare it in services.metamcp.servers.${name}, with a program that reads the value from a variable"
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

  # The servers that are enabled and are not this service itself.
  wanted = lib.filterAttrs (_: found: !found.isOff && !found.isOwn) (lib.mapAttrs convert declared);
in
{
  servers = lib.mapAttrs (_: found: found.server) (
    lib.filterAttrs (_: found: found.refused == null) wanted
  );

  # The servers and values that cannot be converted, unless `final` sets them itself.
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
              "programs.mcp.servers.${name}.${found.table}.${key} ${problem}, so that metamcp leaves it out: write the whole value into a file, and set services.metamcp.servers.${name}.credentials.${key} to its path."
          ) found.problems
        )
    ) wanted
  );
}
