# Tests of the files that the module generates. Each case in nix/tests/rendered has a
# configuration, the lines that the files must have, and the lines that they must not
# have.
#
# A line that ends in "*" is a prefix. Returns the mistakes of each case; none if it
# passes.
{
  lib,
  # Evaluates a module with stub/eval.nix.
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
  hasLine =
    lines: wanted:
    if lib.hasSuffix "*" wanted then
      any (lib.hasPrefix (lib.removeSuffix "*" wanted)) lines
    else
      elem wanted lines;

  mistakes =
    {
      module,
      has ? { },
      lacks ? { },
      # Files that must not exist.
      without ? [ ],
      openPorts ? null,
      # A further condition for the result.
      holds ? (_: true),
      # True to ignore failed assertions and warnings.
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
            filter (line: isWrong (hasLine (linesOf (files.${file} or "")) line)) expected.${file}
          )
        ) (lib.attrNames expected);
    in
    wrong "lacks" (found: !found) has
    ++ wrong "has" (found: found) lacks
    ++ map (file: "${file} exists") (filter (file: files ? ${file}) without)
    ++ lib.optional (
      openPorts != null && result.openPorts != openPorts
    ) "open ports: ${toString result.openPorts}"
    ++ lib.optional (!holds result) "`holds` is false"
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

  # The directives of a unit, with booleans as NixOS writes them.
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

  # The functions and values that the cases use.
  helpers = {
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
builtins.mapAttrs (_: mistakes) (import ./merge-cases.nix ./rendered helpers)
