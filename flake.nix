{
  description = "One service per host that runs each MCP server once and serves it to every client";

  # The head of nixos-unstable on 2026-06-29. To update it, insert the revision that
  # `nix flake metadata github:NixOS/nixpkgs/nixos-unstable` prints,
  # then run `nix flake lock` and `nix flake check`.
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/b5aa0fbd538984f6e3d201be0005b4463d8b09f8";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      eachSystem =
        outputs:
        lib.genAttrs [
          "x86_64-linux"
          "aarch64-linux"
        ] (system: outputs nixpkgs.legacyPackages.${system});
      packageFor = pkgs: self.packages.${pkgs.stdenv.hostPlatform.system}.metamcp;
      # A module with the package of this flake instead of that of the user's nixpkgs.
      withPackage =
        file:
        { lib, pkgs, ... }:
        {
          # With a key, a configuration may import the module more than once.
          key = "metamcp:${baseNameOf file}";
          imports = [ file ];
          services.metamcp.package = lib.mkDefault (packageFor pkgs);
        };
    in
    {
      packages = eachSystem (pkgs: rec {
        metamcp = pkgs.callPackage ./nix/package.nix { };
        default = metamcp;
      });

      overlays.default = final: _: { metamcp = final.callPackage ./nix/package.nix { }; };

      nixosModules = rec {
        metamcp = withPackage ./nix/module.nix;
        default = metamcp;
      };

      homeModules = rec {
        metamcp = withPackage ./nix/home-module.nix;
        default = metamcp;
      };

      checks = eachSystem (
        pkgs:
        import ./nix/checks.nix {
          inherit nixpkgs pkgs;
          module = self.nixosModules.default;
          package = packageFor pkgs;
        }
      );

      devShells = eachSystem (pkgs: {
        default = pkgs.mkShell {
          inputsFrom = [ (packageFor pkgs) ];
          packages = [
            pkgs.clippy
            pkgs.deadnix
            pkgs.jq
            pkgs.nixfmt
            pkgs.rust-analyzer
            pkgs.rustfmt
            pkgs.shellcheck
          ];
        };
      });

      formatter = eachSystem (pkgs: pkgs.nixfmt-tree);
    };
}
