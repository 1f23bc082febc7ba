# metamcp.toml: the file that the program reads, made from the options.
{ lib, pkgs }:
let
  format = pkgs.formats.toml { };

  # TOML has no null. Empty lists and tables are left out too, so that a `url` server
  # has no `args`.
  withoutEmpty =
    table:
    lib.filterAttrs (
      _: value:
      !lib.elem value [
        null
        [ ]
        { }
      ]
    ) (lib.mapAttrs (_: value: if isTable value then withoutEmpty value else value) table);
  isTable = value: builtins.isAttrs value && !(value ? outPath);

  # The names of the credentials that a value refers to, at any depth.
  references =
    value:
    if builtins.isString value then
      lib.optional (lib.hasPrefix "credential:" value) (lib.removePrefix "credential:" value)
    else if builtins.isList value then
      lib.concatMap references value
    else if isTable value then
      lib.concatMap references (lib.attrValues value)
    else
      [ ];
in
{
  inherit format references;

  # The file. The program checks it while the system is built, so that a mistake
  # fails the build and not the service. A program for another platform cannot run
  # there. The files of a certificate do not exist yet (--no-files).
  file =
    package: settings:
    let
      unchecked = format.generate "metamcp.toml" (withoutEmpty settings);
    in
    if pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform then
      pkgs.runCommand "metamcp.toml" { } ''
        cp ${unchecked} $out
        ${lib.getExe package} check --no-files $out
      ''
    else
      unchecked;
}
