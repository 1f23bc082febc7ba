# [tools]: the meta-tools.
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
      Which meta-tools clients of the view `meta` see: `core` for
      `mcp_discover` and the other `mcp_` tools, `metatools` for
      `search_tools`, `run_tool`, `run_chain` and their companions.
    '';
  };
  always_load = mkOption {
    type = types.bool;
    default = true;
    example = false;
    description = ''
      Whether the meta-tools ask clients that search for tools
      themselves, as Claude Code does, to keep them in view.
    '';
  };
  list_changed = mkOption {
    type = types.bool;
    default = true;
    example = false;
    description = "Whether clients of the view `meta` hear that the tools behind it have changed.";
  };
  list_changed_debounce = mkOption {
    type = durationBetween "1ms" "1m";
    default = "150ms";
    example = "1s";
    description = ''
      How long a notice of a changed list or an updated resource
      waits for more of the same, in every view.
    '';
  };
  result_bytes_max = mkOption {
    type = types.ints.between 1024 16777216;
    default = 65536;
    example = 16384;
    description = "How large a result may be, in bytes, that a meta-tool returns whole; of a larger one it returns a preview.";
  };
  max_steps = mkOption {
    type = types.ints.between 1 64;
    default = 8;
    example = 16;
    description = "How many steps a chain of calls may have.";
  };
}
