# A stub of `pkgs`. A package is a directory of the machine that runs the units (/usr
# unless `packages` names another), so that the evaluated files work there unchanged. The
# stub builds nothing.
{
  lib,
  packages ? { },
  system ? "x86_64-linux",
}:
let
  package = name: directory: {
    type = "derivation";
    inherit name system;
    pname = name;
    outPath = directory;
    meta.mainProgram = name;
  };

  # The arguments of a builder, as a derivation that cannot be built.
  unbuilt =
    arguments:
    derivation {
      inherit system;
      name = arguments.name or "${arguments.pname}-${arguments.version}";
      builder = "/bin/sh";
      args = [
        "-c"
        "echo 'this is a stub' >&2; exit 1"
      ];
      # The evaluation of these finds mistakes in the package.
      source = toString (arguments.src or "");
      install = arguments.postInstall or "";
    }
    // {
      meta = arguments.meta or { };
      nativeBuildInputs = arguments.nativeBuildInputs or [ ];
      overrideAttrs = change: unbuilt (arguments // change arguments);
    };

  tomlValue =
    let
      value =
        types.oneOf [
          types.bool
          types.int
          types.float
          types.str
          types.path
          (types.attrsOf value)
          (types.listOf value)
        ]
        // {
          description = "TOML value";
        };
    in
    value;
  inherit (lib) types;

  platform = {
    inherit system;
    canExecute = other: other.system == system;
  };

  pkgs =
    lib.genAttrs [
      "bash"
      "cargo"
      "clippy"
      "coreutils"
      "curl"
      "deadnix"
      "findutils"
      "git"
      "gnugrep"
      "gnused"
      "installShellFiles"
      "jq"
      "nix"
      "nixfmt"
      "nixfmt-tree"
      "python3"
      "rust-analyzer"
      "rustfmt"
      "shellcheck"
      "systemd"
      "util-linux"
    ] (name: package name "/usr")
    // lib.mapAttrs package packages
    // {
      inherit lib;

      stdenv = {
        buildPlatform = platform;
        hostPlatform = platform;
      };

      formats.toml = _: {
        type = tomlValue;
        generate = name: value: builtins.toFile name (import ./to-toml.nix value);
      };

      # Characters that a store path cannot have, such as "@", become "-".
      writeText =
        name:
        builtins.toFile (
          lib.concatMapStrings (part: if builtins.isString part then part else "-") (
            builtins.split "[^[:alnum:]+._?=-]+" name
          )
        );

      writeShellScript = name: text: pkgs.writeText name "#!/bin/sh\n${text}";

      # A program that is found by its name, as the programs of the machine are.
      writeShellApplication =
        arguments@{ name, text, ... }:
        package name "/usr"
        // {
          text = "#!/bin/bash\nset -euo pipefail\n${text}";
          runtimeInputs = map toString (arguments.runtimeInputs or [ ]);
        };

      # The machines and the script of a test, as a derivation that cannot be built.
      testers.runNixOSTest =
        test:
        let
          nodes = lib.mapAttrs (
            _: node:
            (lib.evalModules {
              modules = [
                ./nixos.nix
                { _module.args.pkgs = pkgs; }
                node
              ];
            }).config
          ) test.nodes;
          script =
            if lib.isFunction test.testScript then test.testScript { inherit nodes; } else test.testScript;
          units = lib.mapAttrs (_: node: lib.mapAttrs (_: unit: unit.text) node.systemd.units) nodes;
          failed = lib.concatMap (node: lib.filter (entry: !entry.assertion) node.assertions) (
            lib.attrValues nodes
          );
        in
        if failed != [ ] then
          throw (lib.concatMapStringsSep "\n" (entry: entry.message) failed)
        else
          unbuilt {
            name = "vm-test-run-${test.name}";
            postInstall = script + builtins.toJSON units;
          };

      # Supports only the command "cp FILE $out", whose output is FILE.
      runCommand =
        name: _: script:
        let
          copied = builtins.match "[[:space:]]*cp ([^[:space:]]+) [$]out.*" script;
        in
        unbuilt { inherit name; } // (if copied == null then { } else { outPath = lib.head copied; });

      mkShell = _: unbuilt { name = "shell"; };

      rustPlatform.buildRustPackage = unbuilt;

      callPackage =
        file: arguments:
        let
          function = import file;
        in
        function (builtins.intersectAttrs (builtins.functionArgs function) pkgs // arguments);
    };
in
pkgs
