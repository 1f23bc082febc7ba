# Evaluates NixOS modules and returns plain data: the files, start scripts and links that
# NixOS would create below /, the messages of failed assertions, the warnings, and the
# open ports of the firewall.
{
  lib ? import ./lib.nix,
  modules,
  # The directory of the package on the machine that runs the units.
  package,
  # The unit files of the package, as builtins.readDir returns them.
  packagedUnits,
  # The directories of other packages, by name.
  packages ? { },
}:
let
  pkgs = import ./pkgs.nix {
    inherit lib;
    packages = packages // {
      metamcp = package;
    };
  };
  inherit
    (lib.evalModules {
      modules = [
        ./nixos.nix
        { _module.args.pkgs = pkgs; }
      ]
      ++ modules;
    })
    config
    ;

  inherit (config.systemd) units;
  unitDirectory = "etc/systemd/system";
  merge = lib.foldl' (a: b: a // b) { };
  # A drop-in extends a unit of a package. Every other unit is a file, unless its
  # overrideStrategy differs.
  isDropIn = name: packagedUnits ? ${name} || units.${name}.overrideStrategy == "asDropin";
  links =
    suffix: relation:
    merge (
      lib.concatMap (
        name:
        map (target: {
          "${unitDirectory}/${target}.${suffix}/${name}" = "../${name}";
        }) units.${name}.${relation}
      ) (lib.attrNames units)
    );
in
{
  files =
    lib.mapAttrs' (name: unit: {
      name = "${unitDirectory}/${name}${lib.optionalString (isDropIn name) ".d/overrides.conf"}";
      value = unit.text;
    }) (lib.filterAttrs (_: unit: unit.enable) units)
    // lib.mapAttrs' (_: file: {
      name = "etc/${file.target}";
      value = lib.readFile file.source;
    }) (lib.filterAttrs (_: file: file.enable) config.environment.etc)
    // lib.optionalAttrs (config.systemd.tmpfiles.rules != [ ]) {
      "etc/tmpfiles.d/00-nixos.conf" = lib.concatMapStrings (
        rule: "${rule}\n"
      ) config.systemd.tmpfiles.rules;
    };

  # The commands that the configuration defines.
  commands = lib.listToAttrs (
    map (package: lib.nameValuePair "usr/local/bin/${package.name}" package.text) (
      lib.filter (package: package ? text) config.environment.systemPackages
    )
  );

  scripts = config.startScripts;

  links =
    links "wants" "wantedBy"
    // links "requires" "requiredBy"
    // links "upholds" "upheldBy"
    // merge (
      map (
        name: lib.optionalAttrs (!units.${name}.enable) { "${unitDirectory}/${name}" = "/dev/null"; }
      ) (lib.attrNames units)
    );

  failedAssertions = map (a: a.message) (lib.filter (a: !a.assertion) config.assertions);
  inherit (config) warnings;
  openPorts = config.networking.firewall.allowedTCPPorts;
}
