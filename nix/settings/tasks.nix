# [tasks]: what becomes of tasks.
{ lib }:
let
  inherit (lib) mkOption;
  inherit (import ../types.nix { inherit lib; }) durationBetween;
in
{
  expiry = mkOption {
    type = durationBetween "1m" "24h";
    default = "1h";
    example = "4h";
    description = ''
      How long a task that has ended is kept with its result, `"1m"` to
      `"24h"`.
    '';
  };
}
