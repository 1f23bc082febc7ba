# Evaluates NixOS modules and hands back plain data: the files, start scripts and
# links that NixOS would put below /, the messages of failed assertions, the
# warnings, the ports that the firewall lets through.
{
  lib ? import ./lib.nix,
  modules,
  # Where the package is when its units run.
  package,
  # The unit files that the package brings, as from builtins.readDir.
  packagedUnits,
  # Where other packages are, by name.
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
  # A unit that a package brings is extended by a drop-in, every other is a file
  # of its own, unless it says otherwise.
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

  # The commands that are written in the configuration itself.
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
