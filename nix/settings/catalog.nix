# [catalog]: what is remembered of servers that are not connected.
{
  lib,
  # For the service of a user, and not of the host.
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
      Directory in which definitions of tools are kept for the next
      start, or `"off"`; {file}`${if forUser then "~/.cache" else "/var/cache"}/metamcp` if `null`.${
        lib.optionalString (!forUser) (
          "\nAnother must be there, writable for the user of the service, and in\n"
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
      Whether all lists of a server are read when it is first
      connected, and servers of which a list is not known are
      connected for that in the background, at most two at a time.
    '';
  };
}
