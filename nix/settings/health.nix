# [health]: how it is found that a server no longer answers.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; }) duration durationOrZero;
in
{
  # Left out unless it is set: a server with `url` has a default of its own.
  interval = mkOption {
    type = types.nullOr durationOrZero;
    default = null;
    example = "1m";
    description = ''
      How long a server may be silent before it is pinged, `"0s"` for
      never: 30 s, and 20 s where it has a `url`, if `null`.
    '';
  };
  timeout = mkOption {
    type = duration;
    default = "10s";
    example = "5s";
    description = "How long it may take to answer a ping.";
  };
  failures = mkOption {
    type = types.ints.between 1 100;
    default = 3;
    example = 2;
    description = "After how many pings in a row without an answer it is given up.";
  };
  max_reconnects = mkOption {
    type = types.nullOr types.ints.u32;
    default = null;
    example = 10;
    description = ''
      After how many attempts in a row that nobody asked for a failed
      server is left alone until a request asks for it; never if `null`.
    '';
  };
}
