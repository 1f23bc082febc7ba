# Cases for nixpkgs' lib: the descriptions of types.
{
  descriptions,
  lib,
  package,
  server,
  toml,
  value,
  ...
}:
let
  inherit (lib) types;
in
{
  "types describe themselves" = {
    expr = descriptions {
      inherit (types)
        bool
        float
        int
        lines
        nonEmptyStr
        number
        package
        path
        port
        raw
        singleLineStr
        str
        unspecified
        ;
      inherit (types.ints)
        positive
        unsigned
        u8
        u16
        u32
        ;
      between = types.ints.between 1 1024;
      numberBetween = types.numbers.between 0 1;
      strMatching = types.strMatching "[a-z]+";
      enum = types.enum [
        "a"
        "b"
        3
      ];
      single = types.enum [ "a" ];
      separatedString = types.separatedString ", ";
      nullOr = types.nullOr types.str;
      nullOrList = types.nullOr (types.listOf types.str);
      nullOrEnum = types.nullOr (
        types.enum [
          "a"
          "b"
        ]
      );
      nullOrEither = types.nullOr (types.either types.str types.int);
      nullOrSubmodule = types.nullOr (types.submodule server);
      nullOrBetween = types.nullOr (types.ints.between 1 3);
      nullOrMatching = types.nullOr (types.strMatching "[a-z]+");
      listOf = types.listOf types.str;
      listOfList = types.listOf (types.listOf types.str);
      listOfEnum = types.listOf (
        types.enum [
          "a"
          "b"
        ]
      );
      listOfNullOr = types.listOf (types.nullOr types.str);
      listOfEither = types.listOf (types.either types.str types.int);
      nonEmptyListOf = types.nonEmptyListOf (types.enum [ "a" ]);
      attrsOf = types.attrsOf types.str;
      attrsOfSubmodule = types.attrsOf (types.submodule server);
      attrsOfEither = types.attrsOf (types.either types.str types.ints.unsigned);
      attrsOfPackage = types.attrsOf types.package;
      lazyAttrsOf = types.lazyAttrsOf types.int;
      either = types.either types.str types.int;
      eitherList = types.either types.str (types.listOf types.str);
      oneOf = types.oneOf [
        (types.enum [
          "a"
          "b"
        ])
        (types.attrsOf types.str)
      ];
      three = types.oneOf [
        types.bool
        types.int
        types.str
      ];
      own = types.strMatching "[0-9]+(ms|s|m|h)" // {
        description = "duration";
      };
      nullOrOwn = types.nullOr (
        types.strMatching "[0-9]+(ms|s|m|h)"
        // {
          description = "duration: a whole number and its unit, ms, s, m or h";
        }
      );
      listOfOwn = types.listOf (
        types.strMatching "[a-z]+(/\\*)?"
        // {
          description = "namespace, or all below one";
        }
      );
      addCheck = types.addCheck types.str (text: text != "");
      coercedTo = types.coercedTo types.int toString types.str;
      coercedToList = types.coercedTo types.str (text: [ text ]) (types.listOf types.str);
      nullOrCoercedTo = types.nullOr (
        types.coercedTo (types.enum [
          "a"
          "b"
        ]) (mode: { inherit mode; }) (types.submodule server)
      );
      nullOrUnsigned = types.nullOr types.ints.unsigned;
      nullOrPort = types.nullOr types.port;
      eitherUnsigned = types.either types.ints.unsigned types.str;
      listOfSubmodule = types.listOf (types.submodule server);
      open = types.submodule { freeformType = toml; };
      openValue = types.attrsOf (types.submodule { freeformType = value; });
      value = value;
      attrsOfValue = types.attrsOf value;
      numberBetweenFloats = types.numbers.between 0.5 1.5;
      none = types.enum [ ];
      eitherOwn = types.either (types.enum [ "a" ]) (
        types.strMatching "[a-z]+" // { description = "word, or two of them"; }
      );
    };
    expected = {
      addCheck = "string";
      attrsOf = "attribute set of string";
      attrsOfEither = "attribute set of (string or (unsigned integer, meaning >=0))";
      attrsOfPackage = "attribute set of package";
      attrsOfSubmodule = "attribute set of (submodule)";
      attrsOfValue = "attribute set of (TOML value)";
      between = "integer between 1 and 1024 (both inclusive)";
      bool = "boolean";
      coercedTo = "string or signed integer convertible to it";
      coercedToList = "(list of string) or string convertible to it";
      either = "string or signed integer";
      eitherList = "string or list of string";
      eitherOwn = "value \"a\" (singular enum) or word, or two of them";
      eitherUnsigned = "unsigned integer, meaning >=0, or string";
      enum = "one of \"a\", \"b\", 3";
      float = "floating point number";
      int = "signed integer";
      lazyAttrsOf = "lazy attribute set of signed integer";
      lines = "strings concatenated with \"\\n\"";
      listOf = "list of string";
      listOfEither = "list of (string or signed integer)";
      listOfEnum = "list of (one of \"a\", \"b\")";
      listOfList = "list of list of string";
      listOfNullOr = "list of (null or string)";
      listOfOwn = "list of namespace, or all below one";
      listOfSubmodule = "list of (submodule)";
      nonEmptyListOf = "non-empty (list of value \"a\" (singular enum))";
      nonEmptyStr = "non-empty string";
      none = "impossible (empty enum)";
      nullOr = "null or string";
      nullOrBetween = "null or integer between 1 and 3 (both inclusive)";
      nullOrCoercedTo = "null or ((submodule) or (one of \"a\", \"b\") convertible to it)";
      nullOrEither = "null or string or signed integer";
      nullOrEnum = "null or one of \"a\", \"b\"";
      nullOrList = "null or (list of string)";
      nullOrMatching = "null or string matching the pattern [a-z]+";
      nullOrOwn = "null or duration: a whole number and its unit, ms, s, m or h";
      nullOrPort = "null or 16 bit unsigned integer; between 0 and 65535 (both inclusive)";
      nullOrSubmodule = "null or (submodule)";
      nullOrUnsigned = "null or (unsigned integer, meaning >=0)";
      number = "signed integer or floating point number";
      numberBetween = "integer or floating point number between 0 and 1 (both inclusive)";
      numberBetweenFloats = "integer or floating point number between 0.5 and 1.5 (both inclusive)";
      oneOf = "one of \"a\", \"b\" or attribute set of string";
      open = "open submodule of table";
      openValue = "attribute set of (open submodule of (TOML value))";
      own = "duration";
      package = "package";
      path = "absolute path";
      port = "16 bit unsigned integer; between 0 and 65535 (both inclusive)";
      positive = "positive integer, meaning >0";
      raw = "raw value";
      separatedString = "strings concatenated with \", \"";
      single = "value \"a\" (singular enum)";
      singleLineStr = "(optionally newline-terminated) single-line string";
      str = "string";
      strMatching = "string matching the pattern [a-z]+";
      three = "boolean or signed integer or string";
      u16 = "16 bit unsigned integer; between 0 and 65535 (both inclusive)";
      u32 = "32 bit unsigned integer; between 0 and 4294967295 (both inclusive)";
      u8 = "8 bit unsigned integer; between 0 and 255 (both inclusive)";
      unsigned = "unsigned integer, meaning >=0";
      unspecified = "unspecified value";
      value = "TOML value";
    };
  };
}
