# Cases for nixpkgs' lib: packages.
{ lib, package, ... }:
{
  "getExe is the main program of a package" = {
    expr = [
      (lib.getExe package)
      (lib.getExe (
        package
        // {
          bin = package // {
            outPath = "/opt/hello-bin";
          };
        }
      ))
    ];
    expected = [
      "/opt/hello/bin/hello"
      "/opt/hello-bin/bin/hello"
    ];
  };
  "getBin is the output with the programs of a package" = {
    expr = map (found: found.outPath) [
      (lib.getBin package)
      (lib.getBin (
        package
        // {
          bin = package // {
            outPath = "/opt/hello-bin";
          };
        }
      ))
      (lib.getBin (
        package
        // {
          out = package // {
            outPath = "/opt/hello-out";
          };
        }
      ))
    ];
    expected = [
      "/opt/hello"
      "/opt/hello-bin"
      "/opt/hello-out"
    ];
  };
  "facts about packages" = {
    expr = [
      lib.licenses.mit.spdxId
      (lib.elem "x86_64-linux" lib.platforms.linux)
      (lib.elem "aarch64-linux" lib.platforms.linux)
      (lib.importTOML ../../../../Cargo.toml).package.name
      (lib.hasPrefix "# Cases for nixpkgs" (lib.readFile ./packages.nix))
    ];
    expected = [
      "MIT"
      true
      true
      "metamcp"
      true
    ];
  };
  "getExe' is a program of a package" = {
    expr = [
      (lib.getExe' package "hello-again")
      (lib.getExe' (
        package
        // {
          bin = package // {
            outPath = "/opt/hello-bin";
          };
        }
      ) "hello-again")
    ];
    expected = [
      "/opt/hello/bin/hello-again"
      "/opt/hello-bin/bin/hello-again"
    ];
  };
}
