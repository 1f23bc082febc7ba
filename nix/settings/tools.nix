# [tools]: the meta-tools of the view `meta`.
{ lib }:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; }) durationBetween;
in
{
  sets = mkOption {
    type = types.nonEmptyListOf (
      types.enum [
        "core"
        "metatools"
      ]
    );
    default = [ "core" ];
    example = [
      "core"
      "metatools"
    ];
    description = ''
      The sets of meta-tools that clients of the view `meta` see.
      `core`: `mcp_discover` and the other `mcp_` tools. `metatools`:
      `search_tools`, `run_tool`, `run_chain` and their companions.
    '';
  };
  always_load = mkOption {
    type = types.bool;
    default = true;
    example = false;
    description = ''
      Whether the meta-tools ask clients that search for tools
      themselves, such as Claude Code, to keep the meta-tools in view.
    '';
  };
  list_changed = mkOption {
    type = types.bool;
    default = true;
    example = false;
    description = "Whether metamcp notifies clients of the view `meta` when the tools behind it have changed.";
  };
  list_changed_debounce = mkOption {
    type = durationBetween "1ms" "1m";
    default = "150ms";
    example = "1s";
    description = ''
      The time that a notice of a changed list or an updated resource
      waits for more of the same, in every view.
    '';
  };
  result_bytes_max = mkOption {
    type = types.ints.between 1024 16777216;
    default = 65536;
    example = 16384;
    description = "The largest result, in bytes, that a meta-tool returns whole. Of a larger result, it returns a preview.";
  };
  max_steps = mkOption {
    type = types.ints.between 1 64;
    default = 8;
    example = 16;
    description = "The largest number of steps in a chain of calls.";
  };
}
