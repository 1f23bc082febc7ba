# [pool]: how many connections to servers there are, and for how long.
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
      How many connections to servers there may be. When there are as
      many, the one that was used longest ago makes room, and a
      request waits if all are in use.
    '';
  };
  reserve_size = mkOption {
    type = types.ints.between 0 1024;
    default = 0;
    example = 5;
    description = "How many more there may be for requests that have waited.";
  };
  reserve_timeout = mkOption {
    type = duration;
    default = "5s";
    example = "2s";
    description = "How long a request waits before it may have one of these.";
  };
  min_size = mkOption {
    type = types.ints.between 0 1023;
    default = 0;
    example = 4;
    description = ''
      How many of those that nobody uses are not closed, less than
      `size`.
    '';
  };
  idle_timeout = mkOption {
    type = durationOrZero;
    default = "5m";
    example = "15m";
    description = ''
      After how long a connection that nobody uses is closed, `"0s"`
      for never. A server's `lifecycle` takes precedence.
    '';
  };
}
