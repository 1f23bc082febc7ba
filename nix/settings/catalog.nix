# [catalog]: the lists that metamcp keeps of servers without a connection.
{
  lib,
  # True for the Home Manager module, which is for the service of a user.
  forUser,
}:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; }) cache;
in
{
  cache = mkOption {
    type = types.nullOr cache;
    default = null;
    example = "off";
    description = ''
      The directory in which metamcp keeps definitions of tools for
      the next start, an absolute path, or `"off"`. If `null`,
      {file}`${if forUser then "~/.cache" else "/var/cache"}/metamcp`.${
        lib.optionalString (!forUser) (
          " Any other directory must exist, be\nwritable for the user of the service, and be listed in\n"
          + "{option}`systemd.services.metamcp.serviceConfig.ReadWritePaths`."
        )
      }
    '';
  };
  prime = mkOption {
    type = types.bool;
    default = true;
    example = false;
    description = ''
      Whether metamcp reads all lists of a server when it first
      connects it. metamcp then also connects servers with unknown
      lists in the background, at most two at a time.
    '';
  };
}
