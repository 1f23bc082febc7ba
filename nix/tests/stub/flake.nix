# A stub of the flake input nixpkgs, for machines that cannot download it:
#
#   nix flake check --no-build --offline --no-write-lock-file \
#     --override-input nixpkgs path:nix/tests/stub
{
  outputs =
    { self }:
    let
      lib = import ./lib.nix;
      pkgsFor = system: import ./pkgs.nix { inherit lib system; };
    in
    {
      legacyPackages = lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] pkgsFor;

      lib = lib // {
        nixosSystem =
          { modules, system }:
          lib.evalModules {
            modules = [
              ./nixos.nix
              { _module.args.pkgs = pkgsFor system; }
            ]
            ++ modules;
          };
      };
    };
}
