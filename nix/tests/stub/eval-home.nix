# Evaluates modules for Home Manager and returns plain data: the files and links that it
# would create below /home/ada, the programs that it would build, the messages of failed
# assertions, and the warnings.
{
  lib ? import ./lib.nix,
  modules,
  # The directory of the package on the machine that runs the units.
  package,
}:
let
  pkgs = import ./pkgs.nix {
    inherit lib;
    packages.metamcp = package;
  };
  inherit
    (lib.evalModules {
      modules = [
        ./home-manager.nix
        { _module.args.pkgs = pkgs; }
      ]
      ++ modules;
    })
    config
    ;

  # A program that the evaluation writes is a file in the store, which is not executable.
  # It is moved to a directory where it can run.
  written = lib.filter (lib.hasPrefix builtins.storeDir) (
    map (service: lib.head (lib.splitString " " service.Service.ExecStart)) (
      lib.attrValues config.systemd.user.services
    )
  );
  moved = path: "opt/written/${baseNameOf (builtins.unsafeDiscardStringContext path)}";
  isWant = lib.hasInfix ".wants/";
  relocate = lib.replaceStrings written (map (path: "/${moved path}") written);
in
{
  files =
    lib.mapAttrs' (name: file: {
      name = "home/ada/.config/${name}";
      value = relocate (if file.text != null then file.text else lib.readFile file.source);
    }) (lib.filterAttrs (name: _: !isWant name) config.xdg.configFile)
    // {
      "home/ada/.profile" = lib.concatMapStrings (name: ''
        export ${name}="${config.home.sessionVariables.${name}}"
      '') (lib.attrNames config.home.sessionVariables);
    };

  links =
    lib.mapAttrs' (name: _: {
      name = "home/ada/.config/${name}";
      value = "../${baseNameOf name}";
    }) (lib.filterAttrs (name: _: isWant name) config.xdg.configFile)
    // lib.listToAttrs (
      map (found: {
        name = "home/ada/.nix-profile/bin/${found.meta.mainProgram}";
        value = lib.getExe found;
      }) config.home.packages
    );

  programs = lib.listToAttrs (map (path: lib.nameValuePair (moved path) (lib.readFile path)) written);

  claudeCode = config.programs.claude-code.mcpServers;
  failedAssertions = map (a: a.message) (lib.filter (a: !a.assertion) config.assertions);
  inherit (config) warnings;
}
