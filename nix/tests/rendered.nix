# What the module makes of a configuration: for each, files with the lines that
# they must have, and those that they must not.  The cases are in
# nix/tests/rendered.
#
# A line that ends in "*" stands for all that begin like that.  Gives the
# complaints of each case, none if all is as it should be.
{
  lib,
  # What stub/eval.nix makes of a module.
  evaluate,
  # The text of systemd/metamcp-server-example@.service.
  sample,
}:
let
  inherit (builtins)
    any
    concatMap
    elem
    filter
    isString
    split
    ;

  service = "etc/systemd/system/metamcp.service.d/overrides.conf";
  unit = name: "etc/systemd/system/metamcp-server-${name}@.service";
  socket = name: "etc/systemd/system/metamcp-server-${name}.socket";
  document = "etc/metamcp/metamcp.toml";

  linesOf = text: filter (line: isString line && line != "") (split "\n" text);
  isThere =
    lines: wanted:
    if lib.hasSuffix "*" wanted then
      any (lib.hasPrefix (lib.removeSuffix "*" wanted)) lines
    else
      elem wanted lines;

  complaints =
    {
      module,
      has ? { },
      lacks ? { },
      # Files that are not to be there.
      without ? [ ],
      openPorts ? null,
      # What else must be true of what comes out.
      holds ? (_: true),
      # The messages of assertions are none of ours.
      refused ? false,
    }:
    let
      result = evaluate module;
      inherit (result) files;
      wrong =
        verb: isWrong: expected:
        concatMap (
          file:
          map (line: "${file} ${verb} ${line}") (
            filter (line: isWrong (isThere (linesOf (files.${file} or "")) line)) expected.${file}
          )
        ) (lib.attrNames expected);
    in
    wrong "lacks" (found: !found) has
    ++ wrong "has" (found: found) lacks
    ++ map (file: "${file} is there") (filter (file: files ? ${file}) without)
    ++ lib.optional (
      openPorts != null && result.openPorts != openPorts
    ) "open ports: ${toString result.openPorts}"
    ++ lib.optional (!holds result) "something else is wrong"
    ++ lib.optionals (!refused) (result.failedAssertions ++ result.warnings);

  server = server: { pkgs, ... }: {
    services.metamcp.servers.notes = {
      package = pkgs.bash;
    }
    // server;
  };
  preset = preset: server { sandbox = { inherit preset; }; };
  settings = settings: { services.metamcp = { inherit settings; }; };

  hardened = [
    "CapabilityBoundingSet="
    "LockPersonality=true"
    "PrivateDevices=true"
    "PrivateUsers=true"
    "ProtectProc=invisible"
    "RestrictNamespaces=true"
    "SystemCallFilter=@system-service"
    "SystemCallFilter=~@privileged @resources"
    "UMask=0077"
  ];

  # The directives of [Service], as the other spells them.
  directives =
    text:
    lib.foldl' (
      all: line:
      let
        words = builtins.match "([A-Za-z]+)=(.*)" line;
        key = lib.head words;
        value = builtins.elemAt words 1;
      in
      if words == null then
        all
      else
        all // { ${key} = all.${key} or [ ] ++ [ (if value == "yes" then "true" else value) ]; }
    ) { } (linesOf text);

  # What the cases are written with.
  words = {
    inherit
      directives
      document
      hardened
      preset
      sample
      server
      service
      settings
      socket
      unit
      ;
  };
in
builtins.mapAttrs (_: complaints) (import ./cases.nix ./rendered words)
