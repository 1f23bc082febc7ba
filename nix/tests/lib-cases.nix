# What nixpkgs' lib answers where our module, package and flake ask it.
#
# nix/tests/run holds the stand-in's lib (stub/lib.nix) to it, and with --lib
# nixpkgs' own, so that "the stand-in answers as the real one does" is tested by
# those who have nixpkgs and by those who have not.  Whoever uses another function
# or type of lib first writes down in nix/tests/lib-cases what it answers, from the
# real one.
#
# As in NixOS 26.05.  The module works with older ones, too, which say some of this
# in other words.
{ lib }:
let
  inherit (lib) mkOption types;

  evaluate = modules: (lib.evalModules { inherit modules; }).config;
  option = type: mkOption { inherit type; };
  optional = type: default: mkOption { inherit type default; };
  # What these definitions of one option make together.
  merge =
    type: definitions:
    (evaluate ([ { options.it = option type; } ] ++ map (it: { inherit it; }) definitions)).it;

  server = {
    options = {
      command = optional (types.nullOr types.str) null;
      args = optional (types.listOf types.str) [ ];
      env = optional (types.attrsOf types.str) { };
    };
  };
  named =
    { name, config, ... }:
    {
      options.name = optional types.str name;
      options.socket = optional types.str "/run/${config.name}.sock";
    };
  toml = types.attrsOf value // {
    description = "table";
  };
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
  package = {
    type = "derivation";
    name = "hello-1.0";
    outPath = "/opt/hello";
    meta.mainProgram = "hello";
  };
  byName = {
    inherit package;
    nested.package = package;
  };
  descriptions = lib.mapAttrs (_: type: type.description);

  # What the cases are written with.
  words = {
    inherit
      byName
      descriptions
      evaluate
      lib
      merge
      named
      option
      optional
      package
      server
      toml
      value
      ;
  };
in
{
  # { expr, expected }, as lib.runTests has them.
  values = import ./cases.nix ./lib-cases/values words;

  # { expr, message }: the evaluation fails, and these words are in what it says.
  errors = import ./lib-cases/errors.nix words;
}
