# Evaluates NixOS modules and hands back plain data: the files, start scripts and
# links that NixOS would put below /, the messages of failed assertions, the
# warnings.
{
  lib ? import ./lib.nix,
  modules,
  # Where the package is when its units run.
  package,
  # The unit files that the package brings, as from builtins.readDir.
  packagedUnits,
}:
let
  pkgs = import ./pkgs.nix {
    inherit lib;
    packages.metamcp = package;
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
in
{
  # A unit that a package brings is extended by a drop-in, every other is a
  # file of its own (overrideStrategy = "asDropinIfExists").
  files =
    lib.mapAttrs' (name: unit: {
      name = "${unitDirectory}/${name}${if packagedUnits ? ${name} then ".d/overrides.conf" else ""}";
      value = unit.text;
    }) units
    // lib.mapAttrs' (name: file: {
      name = "etc/${name}";
      value = if file.text != null then file.text else lib.readFile file.source;
    }) config.environment.etc
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

  links = merge (
    lib.concatMap (
      name:
      map (target: { "${unitDirectory}/${target}.wants/${name}" = "../${name}"; }) units.${name}.wantedBy
    ) (lib.attrNames units)
  );

  failedAssertions = map (a: a.message) (lib.filter (a: !a.assertion) config.assertions);
  inherit (config) warnings;
}
