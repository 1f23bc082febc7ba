# [health]: the liveness checks of servers.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; }) duration durationOrZero;
in
{
  # null by default, because the program's default depends on the server's transport.
  interval = mkOption {
    type = types.nullOr durationOrZero;
    default = null;
    example = "1m";
    description = ''
      The silence of a server after which metamcp pings it. `"0s"`:
      never. If `null`, 30 s, or 20 s for a server with a `url`.
    '';
  };
  timeout = mkOption {
    type = duration;
    default = "10s";
    example = "5s";
    description = "The time that a server may take to answer a ping.";
  };
  failures = mkOption {
    type = types.ints.between 1 100;
    default = 3;
    example = 2;
    description = "The number of unanswered pings in a row after which metamcp gives up the session with a server.";
  };
  max_reconnects = mkOption {
    type = types.nullOr types.ints.u32;
    default = null;
    example = 10;
    description = ''
      The number of attempts in a row to reconnect a failed server
      while no request needs it. After them, metamcp waits for a
      request. If `null`, metamcp never stops trying.
    '';
  };
}
