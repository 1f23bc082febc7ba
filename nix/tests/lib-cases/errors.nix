# Cases for nixpkgs' lib: errors and their messages.
{
  byName,
  evaluate,
  lib,
  merge,
  option,
  optional,
  package,
  server,
  value,
  ...
}:
let
  inherit (lib) mkOption types;
in
{
  "an option that is not declared" = {
    expr = evaluate [
      { options.a.b = optional types.int 1; }
      { a.c = 1; }
    ];
    message = "The option `a.c' does not exist. Definition values:";
  };
  "an option of a submodule that is not declared" = {
    expr = merge (types.attrsOf (types.submodule server)) [ { clock.comand = "clock"; } ];
    message = "The option `it.clock.comand' does not exist. Definition values:";
  };
  "a value of another type" = {
    expr = merge types.int [ "1" ];
    message = "A definition for option `it' is not of type `signed integer'";
  };
  "a value that an enum does not have" = {
    expr = merge (types.enum [
      "a"
      "b"
    ]) [ "c" ];
    message = "A definition for option `it' is not of type `one of \"a\", \"b\"'";
  };
  "a string that does not match" = {
    expr = merge (types.strMatching "[a-z]+") [ "A" ];
    message = "A definition for option `it' is not of type `string matching the pattern [a-z]+'";
  };
  "an integer that is out of bounds" = {
    expr = merge (types.ints.between 1 3) [ 4 ];
    message = "A definition for option `it' is not of type `integer between 1 and 3 (both inclusive)'";
  };
  "a type with its own description" = {
    expr = merge (types.strMatching "[0-9]+s" // { description = "duration"; }) [ "1" ];
    message = "A definition for option `it' is not of type `duration'";
  };
  "an element of another type" = {
    expr = merge (types.listOf types.int) [
      [ 1 ]
      [
        2
        "3"
      ]
    ];
    message = "A definition for option `it.\"[definition 1-entry 2]\"' is not of type `signed integer'";
  };
  "a value of a set of another type" = {
    expr = merge (types.attrsOf types.int) [ { a = "1"; } ];
    message = "A definition for option `it.a' is not of type `signed integer'";
  };
  "a value of a submodule of another type" = {
    expr = merge (types.attrsOf (types.submodule server)) [ { clock.args = "--utc"; } ];
    message = "A definition for option `it.clock.args' is not of type `list of string'";
  };
  "null for a type without null" = {
    expr = merge (types.attrsOf value) [ { a = null; } ];
    message = "A definition for option `it.a' is not of type `TOML value'";
  };
  "an empty list for a non-empty one" = {
    expr = merge (types.nonEmptyListOf types.int) [ [ ] ];
    message = "A definition for option `it' is not of type `non-empty (list of signed integer)'";
  };
  "a value of none of several types" = {
    expr = merge (types.either types.int types.str) [ [ ] ];
    message = "A definition for option `it' is not of type `signed integer or string'";
  };
  "a value of another type for a freeform option" = {
    expr = merge (types.submodule { freeformType = types.attrsOf types.int; }) [ { a = "1"; } ];
    message = "A definition for option `it.a' is not of type `signed integer'";
  };
  "an option without a value" = {
    expr = evaluate [ { options.a = option types.int; } ];
    message = "The option `a' was accessed but has no value defined. Try setting the option.";
  };
  "an option of a submodule without a value" = {
    expr = merge (types.attrsOf (types.submodule { options.url = option types.str; })) [
      { cluster = { }; }
    ];
    message = "The option `it.cluster.url' was accessed but has no value defined. Try setting the option.";
  };
  "definitions that contradict one another" = {
    expr = merge types.str [
      "a"
      "b"
    ];
    message = "The option `it' has conflicting definition values:";
  };
  "a value that fails an additional check" = {
    expr = merge (types.addCheck types.str (text: text != "") // { description = "something"; }) [ "" ];
    message = "A definition for option `it' is not of type `something'";
  };
  "a value that cannot be coerced" = {
    expr = merge (types.coercedTo types.int toString types.str) [ [ ] ];
    message = "A definition for option `it' is not of type `string or signed integer convertible to it'";
  };
  "a text that is not a number" = {
    expr = lib.toInt "1a";
    message = "toInt: Could not convert \"1a\" to int.";
  };
  "values of one option that are not equal" = {
    expr = lib.mergeEqualOption [ "it" ] (
      map
        (value: {
          inherit value;
          file = "here";
        })
        [
          1
          2
        ]
    );
    message = "The option `it' has conflicting definition values:";
  };
  "a null and a value" = {
    expr = merge (types.nullOr types.int) [
      null
      1
    ];
    message = "is defined both null and not null, in `<unknown-file>' and `<unknown-file>'.";
  };
  "a read-only option that is set twice" = {
    expr = evaluate [
      {
        options.a = mkOption {
          type = types.int;
          readOnly = true;
        };
      }
      { a = 1; }
      { a = 1; }
    ];
    message = "The option `a' is read-only, but it's set multiple times. Definition values:";
  };
  "two packages for one option" = {
    expr = merge types.package [
      package
      (package // { outPath = "/opt/other"; })
    ];
    message = "The option `it' is defined multiple times while it's expected to be unique";
  };
  "a module with options and stray configuration" = {
    expr = evaluate [
      {
        options.a = optional types.int 1;
        a = 2;
      }
    ];
    message = "has an unsupported attribute `a'. This is caused by introducing a top-level `config' or `options' attribute.";
  };
  "a scalar for a set of options" = {
    expr = evaluate [
      { options.a.b = optional types.int 1; }
      { a = 1; }
    ];
    message = "you're trying to define a value of type `int'";
  };
  "an option that is declared twice" = {
    expr = evaluate [
      { options.a = option types.int; }
      { options.a = option types.str; }
      { a = 1; }
    ];
    message = "The option `a' in `<unknown-file>' is already declared in `<unknown-file>'.";
  };
  "a package that does not exist" = {
    expr = (evaluate [ { options.a = lib.mkPackageOption byName "missing" { }; } ]).a;
    message = "missing cannot be found in pkgs";
  };
  "a module argument that does not exist" = {
    expr = evaluate [ ({ missing, ... }: { options.a = optional types.int missing; }) ];
    message = "attribute 'missing' missing";
  };
  "a condition that is not a boolean" = {
    expr = evaluate [
      { options.a = optional types.int 1; }
      { a = lib.mkIf "yes" 2; }
    ];
    message = "called with a non-Boolean condition";
  };
}
