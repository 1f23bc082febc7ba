# [breaker]: when a server that fails is left alone.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; }) duration;
in
{
  failure_threshold = mkOption {
    type = types.ints.between 0 1000;
    default = 5;
    example = 10;
    description = ''
      After how many failures in a row a server is left alone, 0 for
      never.
    '';
  };
  cooldown = mkOption {
    type = duration;
    default = "30s";
    example = "1m";
    description = "How long it is left alone before one request reaches it again.";
  };
}
