# Evaluates a test of nix/vm and returns plain data: the output of stub/eval.nix for its
# machine, and its script.
{
  lib ? import ./lib.nix,
  # The file of the test.
  test,
  package,
  packagedUnits,
}:
let
  inherit (import test { module = ../../module.nix; }) nodes testScript;
  machine = import ./eval.nix {
    inherit lib package packagedUnits;
    modules = [ nodes.machine ];
  };

  # Files that the evaluation writes to the store are moved to a directory of the machine.
  stored = "(${builtins.storeDir}/[0-9a-z]{32}-[0-9A-Za-z+._?=-]+)";
  found =
    text: lib.concatMap (part: if builtins.isList part then part else [ ]) (builtins.split stored text);
  moved = path: "opt/written/${baseNameOf path}";
  relocate =
    text:
    lib.replaceStrings (found text) (map (path: "/${moved path}") (found text)) (
      builtins.unsafeDiscardStringContext text
    );
in
machine
// {
  files =
    lib.mapAttrs (_: relocate) machine.files
    // lib.listToAttrs (
      map (path: lib.nameValuePair (moved path) (lib.readFile path)) (
        lib.concatMap (text: found (builtins.unsafeDiscardStringContext text)) (
          lib.attrValues machine.files
        )
      )
    );

  script =
    if lib.isFunction testScript then
      testScript { nodes.machine.system.build.toplevel = "/run/current-system"; }
    else
      testScript;
}
