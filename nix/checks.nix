# The checks that `nix flake check` builds.
{
  module,
  nixpkgs,
  package,
  pkgs,
}:
let
  inherit (nixpkgs) lib;

  # The whole project, not only the source of the package.
  source = ../.;

  # cargo COMMAND, with the dependencies and tools of the package.
  cargo =
    name: command: tools:
    package.overrideAttrs (old: {
      pname = "metamcp-${name}";
      src = source;
      nativeBuildInputs = old.nativeBuildInputs ++ tools;
      buildPhase = ''
        runHook preBuild
        cargo ${command}
        runHook postBuild
      '';
      doCheck = false;
      installPhase = "touch $out";
      dontFixup = true;
    });

  vmTest = name: pkgs.testers.runNixOSTest (import ./vm/${name}.nix { inherit module; });
in
{
  inherit package;

  clippy = cargo "clippy" "clippy --offline --locked --all-targets -- -D warnings" [ pkgs.clippy ];
  # The tests start servers and listen, on the loopback interface only.
  tests = cargo "tests" "test --offline --locked --no-fail-fast" [ pkgs.util-linux ];

  fmt =
    pkgs.runCommand "metamcp-fmt"
      {
        nativeBuildInputs = [
          pkgs.cargo
          pkgs.deadnix
          pkgs.nixfmt
          pkgs.rustfmt
        ];
      }
      ''
        cd ${source}
        CARGO_HOME=$TMPDIR cargo fmt --all -- --check
        find . -name '*.nix' -exec nixfmt --check {} +
        deadnix --fail --no-lambda-pattern-names .
        touch $out
      '';

  # The evaluation of the modules with nixpkgs' own lib. It also checks that
  # nix/options.md is up to date.
  evaluation =
    pkgs.runCommand "metamcp-evaluation"
      {
        nativeBuildInputs = [
          pkgs.jq
          pkgs.nix
          pkgs.shellcheck
        ];
      }
      ''
        cp -r ${source} source
        chmod -R u+w source
        patchShebangs source/nix/tests
        source/nix/tests/run --lib ${nixpkgs}/lib ${lib.getExe package} $out
      '';

  # The configuration of the example, as NixOS generates it and the program checks it.
  configuration =
    (lib.nixosSystem {
      inherit (pkgs.stdenv.hostPlatform) system;
      modules = [
        module
        ./tests/example.nix
      ];
    }).config.environment.etc."metamcp/metamcp.toml".source;
}
# One virtual machine for each test. They are slow without KVM.
// lib.mapAttrs' (name: lib.nameValuePair "vm-${name}") (
  lib.genAttrs [
    "activation"
    "cold-start"
    "hardening"
    "reload"
    "restart"
    "secrets"
  ] vmTest
)
