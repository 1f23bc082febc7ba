# All types except submodules.
# `own` holds the definitions of all files in this directory.
own:
let
  inherit (builtins)
    all
    any
    attrNames
    concatLists
    concatMap
    concatStringsSep
    elem
    foldl'
    head
    isAttrs
    isBool
    isFloat
    isInt
    isList
    isString
    length
    map
    mapAttrs
    match
    sort
    substring
    tail
    toJSON
    toString
    ;
  inherit (own)
    concatMapStringsSep
    filterAttrs
    genAttrs
    hasPrefix
    imap
    isDerivation
    isStringLike
    isTypeOf
    mergeDefault
    mergeDefinitions
    mergeEqual
    mergeOne
    optional
    pushDown
    removeSuffix
    showFiles
    showOption
    submoduleType
    toList
    unique
    ;
in
rec {
  mkOptionType =
    {
      name,
      description ? name,
      check ? (_: true),
      merge ? mergeDefault,
      emptyValue ? { },
      getSubOptions ? (_: { }),
      ...
    }@a:
    a
    // {
      _type = "option-type";
      inherit
        name
        description
        check
        merge
        emptyValue
        getSubOptions
        ;
    };
  simple =
    name: description: check:
    mkOptionType {
      inherit name description check;
      descriptionClass = "noun";
      merge = mergeEqual;
    };
  # The description of a type inside that of another type: in brackets, unless its class
  # needs none.
  phrase =
    classes: t:
    if elem (t.descriptionClass or null) classes then t.description else "(${t.description})";

  attrsOfType =
    lazy: t:
    mkOptionType {
      name = if lazy then "lazyAttrsOf" else "attrsOf";
      description = "${if lazy then "lazy " else ""}attribute set of ${
        phrase [
          "noun"
          "composite"
        ] t
      }";
      descriptionClass = "composite";
      getSubOptions = prefix: t.getSubOptions (prefix ++ [ "<name>" ]);
      check = isAttrs;
      emptyValue.value = { };
      nestedTypes.elemType = t;
      merge =
        loc: defs:
        let
          pushed = concatMap (
            d:
            map (value: {
              inherit (d) file;
              inherit value;
            }) (pushDown d.value)
          ) defs;
          names = unique (sort (a: b: a < b) (concatMap (d: attrNames d.value) pushed));
          one =
            n:
            mergeDefinitions (loc ++ [ n ]) t (
              concatMap (
                d:
                optional (d.value ? ${n}) {
                  inherit (d) file;
                  value = d.value.${n};
                }
              ) pushed
            );
          all' = genAttrs names one;
        in
        if lazy then
          mapAttrs (_: m: m.value) all'
        else
          mapAttrs (_: m: m.value) (filterAttrs (_: m: m.defined) all');
    };

  types = rec {
    optionType = mkOptionType {
      name = "optionType";
      description = "optionType";
      descriptionClass = "noun";
      check = isTypeOf "option-type";
      merge = mergeOne;
    };
    raw = mkOptionType {
      name = "raw";
      description = "raw value";
      descriptionClass = "noun";
      merge = mergeOne;
    };
    unspecified = mkOptionType {
      name = "unspecified";
      description = "unspecified value";
      descriptionClass = "noun";
    };
    bool = simple "bool" "boolean" isBool;
    int = simple "int" "signed integer" isInt;
    float = simple "float" "floating point number" isFloat;
    number = either int float;
    str = simple "str" "string" isString;
    nonEmptyStr = simple "nonEmptyStr" "non-empty string" (x: isString x && match "[ \t\n]*" x == null);
    singleLineStr =
      simple "singleLineStr" "(optionally newline-terminated) single-line string"
        (strMatching "[^\n\r]*\n?").check
      // {
        merge = loc: defs: removeSuffix "\n" (mergeEqual loc defs);
      };
    strMatching =
      p:
      simple "strMatching ${toJSON p}" "string matching the pattern ${p}" (
        x: isString x && match p x != null
      );
    separatedString =
      sep:
      mkOptionType {
        name = "separatedString";
        description = "strings concatenated with ${toJSON sep}";
        descriptionClass = "noun";
        check = isString;
        merge = _: defs: concatStringsSep sep (map (d: d.value) defs);
      };
    lines = separatedString "\n";
    path = simple "path" "absolute path" (x: isStringLike x && substring 0 1 (toString x) == "/");
    package = mkOptionType {
      name = "package";
      description = "package";
      descriptionClass = "noun";
      check = x: isDerivation x || isStringLike x && hasPrefix (builtins.storeDir + "/") (toString x);
      merge = mergeOne;
    };
    enum =
      vs:
      simple "enum" (
        if vs == [ ] then
          "impossible (empty enum)"
        else if length vs == 1 then
          "value ${toJSON (head vs)} (singular enum)"
        else
          "one of ${concatMapStringsSep ", " toJSON vs}"
      ) (x: elem x vs)
      // {
        descriptionClass = if length vs < 2 then "noun" else "conjunction";
        functor.payload.values = vs;
      };
    ints =
      let
        unsign =
          bits: most:
          ints.between 0 most
          // {
            description = "${toString bits} bit unsigned integer; between 0 and ${toString most} (both inclusive)";
          };
      in
      rec {
        between =
          lo: hi:
          simple "intBetween" "integer between ${toString lo} and ${toString hi} (both inclusive)" (
            x: isInt x && x >= lo && x <= hi
          );
        unsigned = simple "unsignedInt" "unsigned integer, meaning >=0" (x: isInt x && x >= 0) // {
          descriptionClass = "nonRestrictiveClause";
        };
        positive = simple "positiveInt" "positive integer, meaning >0" (x: isInt x && x > 0) // {
          descriptionClass = "nonRestrictiveClause";
        };
        u8 = unsign 8 255;
        u16 = unsign 16 65535;
        u32 = unsign 32 4294967295;
      };
    numbers.between =
      lo: hi:
      simple "numberBetween"
        "integer or floating point number between ${toJSON lo} and ${toJSON hi} (both inclusive)"
        (x: (isInt x || isFloat x) && x >= lo && x <= hi)
      // {
        descriptionClass = "conjunction";
      };
    port = ints.u16;
    nullOr =
      t:
      mkOptionType {
        name = "nullOr";
        description = "null or ${
          phrase [
            "noun"
            "conjunction"
          ] t
        }";
        descriptionClass = "conjunction";
        inherit (t) getSubOptions;
        check = x: x == null || t.check x;
        emptyValue.value = null;
        merge =
          loc: defs:
          if all (d: d.value == null) defs then
            null
          else if any (d: d.value == null) defs then
            throw "The option `${showOption loc}' is defined both null and not null, in ${
              showFiles (map (d: d.file) defs)
            }."
          else
            t.merge loc defs;
      };
    listOf =
      t:
      mkOptionType {
        name = "listOf";
        description = "list of ${
          phrase [
            "noun"
            "composite"
          ] t
        }";
        descriptionClass = "composite";
        getSubOptions = prefix: t.getSubOptions (prefix ++ [ "*" ]);
        check = isList;
        emptyValue.value = [ ];
        nestedTypes.elemType = t;
        merge =
          loc: defs:
          concatLists (
            imap 1 (
              n: d:
              concatLists (
                imap 1 (
                  m: v:
                  let
                    r = mergeDefinitions (loc ++ [ "[definition ${toString n}-entry ${toString m}]" ]) t [
                      {
                        inherit (d) file;
                        value = v;
                      }
                    ];
                  in
                  optional r.defined r.value
                ) d.value
              )
            ) defs
          );
      };
    nonEmptyListOf =
      t:
      listOf t
      // {
        description = "non-empty ${phrase [ "noun" ] (listOf t)}";
        check = x: isList x && x != [ ];
        emptyValue = { };
      };
    attrsOf = attrsOfType false;
    lazyAttrsOf = attrsOfType true;
    submodule = m: submoduleType (toList m) { };
    either =
      a: b:
      mkOptionType {
        name = "either";
        description =
          if a.descriptionClass or null == "nonRestrictiveClause" then
            "${a.description}, or ${
              phrase [
                "noun"
                "conjunction"
              ] b
            }"
          else
            "${
              phrase [
                "noun"
                "conjunction"
              ] a
            } or ${
              phrase [
                "noun"
                "conjunction"
                "composite"
              ] b
            }";
        descriptionClass = "conjunction";
        check = x: a.check x || b.check x;
        merge =
          loc: defs:
          if all (d: a.check d.value) defs then
            a.merge loc defs
          else if all (d: b.check d.value) defs then
            b.merge loc defs
          else
            mergeOne loc defs;
      };
    oneOf = ts: foldl' either (head ts) (tail ts);
    # Converts a value of another type before the check.
    coercedTo =
      from: coerce: to:
      mkOptionType {
        name = "coercedTo";
        description = "${phrase [ "noun" ] to} or ${phrase [ "noun" ] from} convertible to it";
        inherit (to) emptyValue getSubOptions;
        check = x: from.check x && to.check (coerce x) || to.check x;
        merge =
          loc: defs:
          to.merge loc (
            map (d: d // { value = if from.check d.value then coerce d.value else d.value; }) defs
          );
      };
    addCheck = t: check: t // { check = x: t.check x && check x; };
  };
}
