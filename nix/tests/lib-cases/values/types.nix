# Cases for nixpkgs' lib: the values that a type accepts.
{
  lib,
  package,
  server,
  value,
  ...
}:
let
  inherit (lib) types;
in
{
  "types accept what they describe and nothing else" = {
    expr = lib.attrNames (
      lib.filterAttrs
        (
          _:
          {
            type,
            accepts,
            refuses,
          }:
          !lib.all type.check accepts || lib.any type.check refuses
        )
        {
          bool = {
            type = types.bool;
            accepts = [
              true
              false
            ];
            refuses = [
              0
              "true"
            ];
          };
          int = {
            type = types.int;
            accepts = [
              1
              (-1)
            ];
            refuses = [
              1.0
              "1"
            ];
          };
          float = {
            type = types.float;
            accepts = [ 1.5 ];
            refuses = [ 1 ];
          };
          number = {
            type = types.number;
            accepts = [
              1
              1.5
            ];
            refuses = [ "1" ];
          };
          unsigned = {
            type = types.ints.unsigned;
            accepts = [
              0
              1
            ];
            refuses = [ (-1) ];
          };
          positive = {
            type = types.ints.positive;
            accepts = [ 1 ];
            refuses = [
              0
              (-1)
            ];
          };
          between = {
            type = types.ints.between 1 3;
            accepts = [
              1
              3
            ];
            refuses = [
              0
              4
              2.0
            ];
          };
          numberBetween = {
            type = types.numbers.between 0 1;
            accepts = [
              0
              0.5
              1
            ];
            refuses = [
              1.5
              "1"
            ];
          };
          port = {
            type = types.port;
            accepts = [
              0
              65535
            ];
            refuses = [
              65536
              (-1)
            ];
          };
          str = {
            type = types.str;
            accepts = [
              "a"
              ""
            ];
            refuses = [
              1
              package
              /etc
            ];
          };
          nonEmptyStr = {
            type = types.nonEmptyStr;
            accepts = [ "a" ];
            refuses = [
              ""
              " \n"
            ];
          };
          singleLineStr = {
            type = types.singleLineStr;
            accepts = [
              "a"
              "a\n"
              ""
            ];
            refuses = [ "a\nb" ];
          };
          strMatching = {
            type = types.strMatching "[a-z]+";
            accepts = [ "abc" ];
            refuses = [
              "abc1"
              ""
              1
            ];
          };
          path = {
            type = types.path;
            accepts = [
              "/etc"
              /etc
              package
            ];
            refuses = [
              "etc"
              ""
              1
            ];
          };
          package = {
            type = types.package;
            accepts = [ package ];
            refuses = [
              "/opt/hello"
              "hello"
              { outPath = "/opt/hello"; }
              3
            ];
          };
          enum = {
            type = types.enum [
              "a"
              1
            ];
            accepts = [
              "a"
              1
            ];
            refuses = [ "1" ];
          };
          addCheck = {
            type = types.addCheck types.str (text: text != "");
            accepts = [ "a" ];
            refuses = [
              ""
              1
            ];
          };
          coercedTo = {
            type = types.coercedTo types.int toString (types.strMatching "[0-9]+");
            accepts = [
              1
              "1"
            ];
            refuses = [
              (-1)
              "a"
              null
            ];
          };
          optionType = {
            type = types.optionType;
            accepts = [ types.str ];
            refuses = [ "str" ];
          };
          raw = {
            type = types.raw;
            accepts = [
              null
              (x: x)
            ];
            refuses = [ ];
          };
          nullOr = {
            type = types.nullOr types.int;
            accepts = [
              null
              1
            ];
            refuses = [ "1" ];
          };
          listOf = {
            type = types.listOf types.int;
            accepts = [
              [ ]
              [ "looked at later" ]
            ];
            refuses = [ { } ];
          };
          nonEmptyListOf = {
            type = types.nonEmptyListOf types.int;
            accepts = [ [ 1 ] ];
            refuses = [
              [ ]
              1
            ];
          };
          attrsOf = {
            type = types.attrsOf types.int;
            accepts = [
              { }
              { a = "looked at later"; }
            ];
            refuses = [ [ ] ];
          };
          submodule = {
            type = types.submodule server;
            accepts = [
              { }
              (_: { })
            ];
            refuses = [
              [ ]
              1
            ];
          };
          either = {
            type = types.either types.int (types.listOf types.int);
            accepts = [
              1
              [ ]
            ];
            refuses = [
              "1"
              null
            ];
          };
          oneOf = {
            type = value;
            accepts = [
              true
              1
              1.5
              "s"
              /etc
              { }
              [ ]
            ];
            refuses = [ null ];
          };
        }
    );
    expected = [ ];
  };
}
