# [breaker]: the circuit breakers, which leave failing servers alone.
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
      The number of failures in a row that opens the breaker of a
      server. While the breaker is open, metamcp leaves the server
      alone. 0: never.
    '';
  };
  cooldown = mkOption {
    type = duration;
    default = "30s";
    example = "1m";
    description = "The time that a breaker stays open. Then one request reaches the server. If it fails too, the time begins again.";
  };
}
