{
  description = "One service per host that runs each MCP server once and serves it to every client";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

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
    in
    {
      packages = eachSystem (pkgs: rec {
        metamcp = pkgs.callPackage ./nix/package.nix { };
        default = metamcp;
      });

      overlays.default = final: _: { metamcp = final.callPackage ./nix/package.nix { }; };

      nixosModules = rec {
        metamcp =
          { lib, pkgs, ... }:
          {
            imports = [ ./nix/module.nix ];
            services.metamcp.package = lib.mkDefault (packageFor pkgs);
          };
        default = metamcp;
      };

      checks = eachSystem (
        pkgs:
        import ./nix/checks.nix {
          inherit nixpkgs;
          inherit (pkgs.stdenv.hostPlatform) system;
          module = self.nixosModules.metamcp;
          package = packageFor pkgs;
        }
      );

      devShells = eachSystem (pkgs: {
        default = pkgs.mkShell {
          inputsFrom = [ (packageFor pkgs) ];
          packages = [
            pkgs.clippy
            pkgs.jq
            pkgs.rust-analyzer
            pkgs.rustfmt
            pkgs.shellcheck
          ];
        };
      });

      formatter = eachSystem (pkgs: pkgs.nixfmt-tree);
    };
}
