# The behaviour of nixpkgs' lib that the modules, the package and the flake depend on.
#
# nix/tests/run checks the stub (stub/lib.nix) against these cases, and with --lib it
# checks nixpkgs' own lib. Both checks together show that the stub behaves like nixpkgs.
# Before you use another function or type of lib, add a case with the result of nixpkgs'
# lib to nix/tests/lib-cases.
#
# The cases are from NixOS 26.05. The module works with older releases too, some of whose
# messages differ.
{ lib }:
let
  inherit (lib) mkOption types;

  evaluate = modules: (lib.evalModules { inherit modules; }).config;
  option = type: mkOption { inherit type; };
  optional = type: default: mkOption { inherit type default; };
  # The merged value of several definitions of one option.
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

  # The functions and values that the cases use.
  helpers = {
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
  # { expr, expected }, as for lib.runTests.
  values = import ./merge-cases.nix ./lib-cases/values helpers;

  # { expr, message }: the evaluation fails, and the error contains the message.
  errors = import ./lib-cases/errors.nix helpers;
}
