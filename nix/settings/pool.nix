# [pool]: the number and lifetime of connections to servers.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; }) duration durationOrZero;
in
{
  size = mkOption {
    type = types.ints.between 1 1024;
    default = 20;
    example = 50;
    description = ''
      The largest number of connections to servers. At this number,
      metamcp closes the idle connection that was used longest ago. If
      all are in use, a request waits.
    '';
  };
  reserve_size = mkOption {
    type = types.ints.between 0 1024;
    default = 0;
    example = 5;
    description = "The number of further connections, for requests that have waited for `reserve_timeout`.";
  };
  reserve_timeout = mkOption {
    type = duration;
    default = "5s";
    example = "2s";
    description = "The time that a request waits before it may use the reserve.";
  };
  min_size = mkOption {
    type = types.ints.between 0 1023;
    default = 0;
    example = 4;
    description = ''
      The number of idle connections that metamcp keeps: those used
      last. It must be less than `size`.
    '';
  };
  idle_timeout = mkOption {
    type = durationOrZero;
    default = "5m";
    example = "15m";
    description = ''
      The time after which metamcp closes an idle connection. `"0s"`:
      never. A server's `lifecycle` takes precedence.
    '';
  };
}
