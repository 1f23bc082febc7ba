# Evaluates the cases of refused.nix and returns their messages as plain data. If a type
# rejects a value, the evaluation ends with an error; `refused` is null for those cases,
# and refused.sh evaluates each of them alone.
{
  lib,
  # The same arguments as for stub/eval.nix.
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
  messages = { failedAssertions, warnings, ... }: failedAssertions ++ warnings;
in
{
  # The kinds do not depend on a configuration.
  inherit (import ../assertions.nix { inherit lib; } { cfg = throw "no configuration"; }) kinds;

  cases = lib.mapAttrs (
    _: case:
    let
      accepted = evaluate case.accepted;
    in
    {
      inherit (case) kind message;
      refused = if case.kind == "type" then null else messages (evaluate case.refused);
      accepted = builtins.deepSeq accepted {
        messages = messages accepted;
        file = builtins.toFile "metamcp.toml" accepted.files."etc/metamcp/metamcp.toml";
      };
    }
  ) table.cases;
}
