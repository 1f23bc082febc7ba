# What `nix flake check` builds.
{
  module,
  nixpkgs,
  package,
  system,
}:
{
  inherit package;

  # The example, as real NixOS makes it and as the program itself checks it.
  configuration =
    (nixpkgs.lib.nixosSystem {
      inherit system;
      modules = [
        module
        ./tests/example.nix
      ];
    }).config.environment.etc."metamcp/metamcp.toml".source;
}
