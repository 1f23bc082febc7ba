# Renders a value as TOML in pure Nix, so that an evaluation can write the file. nixpkgs'
# pkgs.formats.toml writes it only in a build.
#
#   (import ./to-toml.nix) { a = 1; b.c = [ "x" { y = true; } ]; }
#
# Scalars of a table come first, then its tables; tables in lists are inline.
# null has no TOML form and is an error, as in nixpkgs.
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    filter
    isAttrs
    isBool
    isFloat
    isInt
    isList
    isPath
    isString
    match
    replaceStrings
    toJSON
    typeOf
    ;

  # JSON's string escapes are a subset of TOML's basic-string escapes, except
  # that TOML also wants DEL escaped.
  del = builtins.fromJSON "\"\\u007f\"";
  quote = s: replaceStrings [ del ] [ "\\u007F" ] (toJSON s);
  key = k: if match "[A-Za-z0-9_-]+" k != null then k else quote k;
  isTable = v: isAttrs v && !(v ? outPath) && !(v ? __toString);

  float =
    f:
    let
      s = toJSON f;
    in
    if match "-?[0-9]+" s != null then s + ".0" else s;

  scalar =
    where: v:
    if isString v then
      quote v
    else if isPath v then
      quote (toString v)
    else if isBool v then
      (if v then "true" else "false")
    else if isInt v then
      toString v
    else if isFloat v then
      float v
    else if isList v then
      "[" + concatStringsSep ", " (map (scalar where) v) + "]"
    else if isTable v then
      if v == { } then
        "{}"
      else
        "{ "
        + concatStringsSep ", " (map (k: "${key k} = ${scalar "${where}.${k}" v.${k}}") (attrNames v))
        + " }"
    else if isAttrs v then
      quote "${v}" # a package: its store path
    else
      throw "to-toml: ${where} is a ${typeOf v}, which TOML cannot express";

  table =
    prefix: t:
    let
      names = attrNames t;
      leaves = filter (k: !(isTable t.${k})) names;
      tables = filter (k: isTable t.${k}) names;
      dotted = k: concatStringsSep "." (map key (prefix ++ [ k ]));
      sub =
        k:
        let
          v = t.${k};
          onlyTables = v != { } && builtins.all (x: isTable v.${x}) (attrNames v);
        in
        # a header is needed unless the table holds nothing but tables
        (
          if onlyTables then
            [ ]
          else
            [
              ""
              "[${dotted k}]"
            ]
        )
        ++ table (prefix ++ [ k ]) v;
    in
    map (k: "${key k} = ${scalar (dotted k) t.${k}}") leaves ++ concatMap sub tables;
  dropLeadingBlank = ls: if ls != [ ] && builtins.head ls == "" then builtins.tail ls else ls;
in
value: concatStringsSep "\n" (dropLeadingBlank (table [ ] value)) + "\n"
