{
  lib,
  installShellFiles,
  rustPlatform,
  stdenv,
}:
let
  manifest = lib.importTOML ../Cargo.toml;
in
rustPlatform.buildRustPackage {
  pname = manifest.package.name;
  inherit (manifest.package) version;

  # Only the files that the build and the unit tests read, so that a change to the
  # module or to a test outside cargo rebuilds nothing.
  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../.cargo
      ../Cargo.lock
      ../Cargo.toml
      # The unit tests read the examples and the methods of the documentation.
      ../README.md
      ../docs
      ../src
      ../systemd
      # Cargo.toml may name targets in tests/, and cargo checks that they exist.
      (lib.fileset.fileFilter (file: file.hasExt "rs") ../tests)
    ];
  };

  cargoLock.lockFile = ../Cargo.lock;

  # The release profile builds quickly; this profile optimises the whole program.
  buildType = "dist";

  nativeBuildInputs = [ installShellFiles ];

  # Only the unit tests. The tests in tests/ start processes and sockets; the flake
  # checks run them.
  cargoTestFlags = [
    "--lib"
    "--bins"
  ];

  # The drop-in in systemd/ is for systemd 252; nixpkgs has a newer systemd.
  postInstall = ''
    install -Dm444 -t $out/lib/systemd/system systemd/metamcp{.service,.socket,-control.socket}
    install -Dm444 -t $out/lib/systemd/user systemd/user/*
    install -Dm444 -t $out/lib/systemd/catalog systemd/metamcp.catalog
    substituteInPlace $out/lib/systemd/{system,user}/metamcp.service \
      --replace-fail /usr/bin/metamcp $out/bin/metamcp
    install -Dm444 -t $out/share/doc/metamcp systemd/metamcp-server-example*
  ''
  # The program writes these files, so it must be able to run on the build platform.
  + lib.optionalString (stdenv.buildPlatform.canExecute stdenv.hostPlatform) ''
    $out/bin/metamcp man --directory man
    installManPage man/*
    for shell in bash fish zsh; do
      $out/bin/metamcp completions $shell >metamcp.$shell
    done
    installShellCompletion metamcp.{bash,fish,zsh}
  '';

  meta = {
    inherit (manifest.package) description;
    license = lib.licenses.mit;
    maintainers = [ ];
    mainProgram = "metamcp";
    platforms = lib.platforms.linux;
  };
}
