# [tasks]: the calls that continue without their callers.
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
      The time that metamcp keeps an ended task with its result, `"1m"`
      to `"24h"`.
    '';
  };
}
