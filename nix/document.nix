# metamcp.toml: what the options say, as the file that the program reads.
{ lib, pkgs }:
let
  format = pkgs.formats.toml { };

  # TOML has no null.  Lists and tables that say nothing stay out as well, so
  # that a `url` server has no `args`.
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

  # The names of the credentials that a value refers to, wherever in it.
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

  # The keys that are set, as plain data.
  document = withoutEmpty;

  # The file.  The program itself checks it while the system is built: a mistake
  # fails the build and not the service.  A foreign program cannot be run, and
  # the files of a certificate are not there yet.
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
