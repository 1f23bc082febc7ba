# [service]: the behaviour of the service as a whole.
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
      The longest silence of a request to a server. Progress that the
      server reports restarts the time.
    '';
  };
  max_total_timeout = mkOption {
    type = duration;
    default = "300s";
    example = "30m";
    description = "The longest total time of a request, including all progress.";
  };
  shutdown_timeout = mkOption {
    type = duration;
    default = "10s";
    example = "1m";
    description = ''
      The time that running requests may go on after a stop was
      requested. The service extends the stop timeout of systemd, so
      that the unit's `TimeoutStopSec` may be shorter.
    '';
  };
  progress_beat = mkOption {
    type = durationOrZero;
    default = "30s";
    example = "10s";
    description = ''
      The silence of a tool after which metamcp itself sends progress
      to a client that asked for progress. `"0s"`: never.
    '';
  };
  idle_exit = mkOption {
    type = durationOrZero;
    default = "0s";
    example = "30m";
    description = ''
      The time without any client, operator request, call or task after
      which the service exits. systemd starts it again for the next
      client. `"0s"`: never.
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
    description = "The least severe level of messages that metamcp logs.";
  };
  memory_max = mkOption {
    type = types.nullOr (types.ints.between 117440512 1099511627776);
    default = null;
    example = 536870912;
    description = ''
      The number of bytes that the messages of all clients together may
      take. If `null`, half of the unit's `MemoryMax`, or 256 MiB if the
      unit has no `MemoryMax`.
    '';
  };
}
