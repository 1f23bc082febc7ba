# What the module says to the cases of refused.nix, as plain data.  Where an
# evaluation fails, only another one can tell with which words: for those cases
# `refused` is null.
{
  lib,
  # As for stub/eval.nix.
  package,
  packagedUnits,
}:
let
  table = import ./refused.nix;
  evaluate =
    module:
    import ./stub/eval.nix {
      inherit lib package packagedUnits;
      modules = [
        ../module.nix
        table.base
        module
      ];
    };
  told = { failedAssertions, warnings, ... }: failedAssertions ++ warnings;
in
{
  # Known without any configuration.
  inherit (import ../assertions.nix { inherit lib; } { cfg = throw "no configuration"; }) kinds;

  cases = lib.mapAttrs (
    _: case:
    let
      accepted = evaluate case.accepted;
    in
    {
      inherit (case) kind message;
      refused = if case.kind == "type" then null else told (evaluate case.refused);
      accepted = builtins.deepSeq accepted {
        told = told accepted;
        file = builtins.toFile "metamcp.toml" accepted.files."etc/metamcp/metamcp.toml";
      };
    }
  ) table.cases;
}
