# A stub of the part of Home Manager that the module uses. It declares the options that
# the module sets and reads, and renders units as Home Manager does, into
# xdg.configFile.
#
# Option names and types follow the manual of Home Manager.
{ config, lib, ... }:
let
  inherit (lib) mkOption types;

  opt = type: default: mkOption { inherit type default; };
  primitive = types.oneOf [
    types.bool
    types.int
    types.str
    types.path
  ];
  units = opt (types.attrsOf (
    types.attrsOf (types.attrsOf (types.either primitive (types.listOf primitive)))
  )) { };
  files = opt (types.attrsOf (
    types.submodule {
      options = {
        text = opt (types.nullOr types.str) null;
        source = opt (types.nullOr types.path) null;
      };
    }
  )) { };
  json = types.attrsOf types.raw;

  # Sections and keys are sorted by name; a list is a repeated key.
  value = x: if builtins.isBool x then lib.boolToString x else toString x;
  section =
    name: keys:
    "[${name}]\n"
    + lib.concatMapStrings (
      key: lib.concatMapStrings (x: "${key}=${value x}\n") (lib.toList keys.${key})
    ) (lib.attrNames keys);
  text =
    unit:
    let
      kept = lib.mapAttrs (_: lib.filterAttrs (_: x: x != null && x != [ ])) unit;
      sections = lib.filterAttrs (_: keys: keys != { }) kept;
    in
    lib.concatMapStringsSep "\n" (name: section name sections.${name}) (lib.attrNames sections);

  render =
    suffix:
    lib.concatMapAttrs (
      name: unit:
      let
        file = "${name}.${suffix}";
      in
      {
        "systemd/user/${file}".text = text unit;
      }
      // lib.listToAttrs (
        map (target: lib.nameValuePair "systemd/user/${target}.wants/${file}" { text = text unit; }) (
          unit.Install.WantedBy or [ ]
        )
      )
    );
in
{
  options = {
    assertions = opt (types.listOf types.unspecified) [ ];
    warnings = opt (types.listOf types.str) [ ];
    meta = opt types.unspecified { };
    home = {
      homeDirectory = opt types.path "/home/ada";
      profileDirectory = opt types.path "/home/ada/.nix-profile";
      packages = opt (types.listOf types.package) [ ];
      sessionVariables = opt (types.attrsOf types.str) { };
    };
    xdg.configHome = opt types.path "/home/ada/.config";
    xdg.configFile = files;
    systemd.user.services = units;
    systemd.user.sockets = units;
    programs.mcp.enable = opt types.bool false;
    programs.mcp.servers = opt (types.attrsOf json) { };
    programs.claude-code.enable = opt types.bool false;
    programs.claude-code.enableMcpIntegration = opt types.bool false;
    programs.claude-code.mcpServers = opt (types.attrsOf json) { };
  };

  config.xdg.configFile = lib.mkMerge [
    (render "service" config.systemd.user.services)
    (render "socket" config.systemd.user.sockets)
  ];
}
