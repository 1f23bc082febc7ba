# [service]: how the service itself runs.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; }) duration durationOrZero;
in
{
  request_timeout = mkOption {
    type = duration;
    default = "60s";
    example = "5m";
    description = ''
      How long a request to a server may take. Progress that the
      server reports starts the time anew.
    '';
  };
  max_total_timeout = mkOption {
    type = duration;
    default = "300s";
    example = "30m";
    description = "How long a request may take, whatever progress it reports.";
  };
  shutdown_timeout = mkOption {
    type = duration;
    default = "10s";
    example = "1m";
    description = ''
      How long requests in flight may go on after the service was
      told to stop. The service tells systemd, so the unit's
      `TimeoutStopSec` need not be as long.
    '';
  };
  progress_beat = mkOption {
    type = durationOrZero;
    default = "30s";
    example = "10s";
    description = ''
      How long a tool may be silent before a client that asked for
      progress is sent some by the service, `"0s"` for never.
    '';
  };
  idle_exit = mkOption {
    type = durationOrZero;
    default = "0s";
    example = "30m";
    description = ''
      After how long without a client, a request of an operator, a
      call or a task the service ends by itself, `"0s"` for never.
      systemd starts it again for the next client.
    '';
  };
  log_level = mkOption {
    type = types.enum [
      "error"
      "warn"
      "info"
      "debug"
      "trace"
    ];
    default = "info";
    example = "debug";
    description = "Least severe kind of message that goes to the journal.";
  };
  memory_max = mkOption {
    type = types.nullOr (types.ints.between 117440512 1099511627776);
    default = null;
    example = 536870912;
    description = ''
      How many bytes messages may take, over all clients together.
      Half of the unit's `MemoryMax` if `null`, or 256 MiB where the
      unit has none.
    '';
  };
}
