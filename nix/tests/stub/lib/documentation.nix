# The documentation of options.
# `own` holds the definitions of all files in this directory.
own:
let
  inherit (builtins)
    attrValues
    concatMap
    concatStringsSep
    elemAt
    filter
    genList
    isAttrs
    isBool
    isFunction
    isList
    isPath
    isString
    length
    map
    replaceStrings
    toJSON
    toString
    ;
  inherit (own)
    concatMapStringsSep
    isDerivation
    isOption
    literalExpression
    mapAttrsToList
    optionalAttrs
    optionals
    showOption
    ;
in
rec {
  # The documentation of every option below `options`, including those of submodules.
  optionAttrSetToDocList =
    options:
    concatMap (
      opt:
      let
        visible = opt.visible or true;
        isVisible = if isBool visible then visible else visible == "shallow";
        hasSubOptions = if isBool visible then visible else visible == "transparent";
      in
      [
        (
          {
            inherit (opt) loc;
            name = showOption opt.loc;
            description = opt.description or null;
            declarations = [ ];
            internal = opt.internal or false;
            visible = isVisible;
            readOnly = opt.readOnly or false;
            type = opt.type.description or "unspecified";
          }
          // optionalAttrs (opt ? example) { example = renderOptionValue opt.example; }
          // optionalAttrs (opt ? defaultText || opt ? default) {
            default = renderOptionValue (opt.defaultText or opt.default);
          }
        )
      ]
      ++ optionals hasSubOptions (optionAttrSetToDocList (opt.type.getSubOptions opt.loc))
    ) (collect isOption options);
  collect =
    p: v:
    if p v then
      [ v ]
    else if isAttrs v then
      concatMap (collect p) (attrValues v)
    else
      [ ];
  renderOptionValue = v: if v ? _type && v ? text then v else literalExpression (toPretty { } v);
  # Renders a value as Nix.
  toPretty =
    {
      multiline ? true,
      ...
    }:
    let
      go =
        indent: v:
        let
          opening = if multiline then "\n${indent}  " else " ";
          closing = if multiline then "\n${indent}" else " ";
          lines = filter isString (builtins.split "\n" v);
          inLines = map (replaceStrings [ "\${" "''" ] [ "''\${" "'''" ]) lines;
          last = elemAt inLines (length lines - 1);
        in
        if isString v then
          if multiline && length lines > 1 then
            "''"
            + opening
            + concatStringsSep opening (genList (elemAt inLines) (length lines - 1))
            + (if last == "" then closing else opening + last)
            + "''"
          else
            "\"${
              concatStringsSep "\\n" (map (replaceStrings [ "\\" "\"" "\${" ] [ "\\\\" "\\\"" "\\\${" ]) lines)
            }\""
        else if isPath v then
          toString v
        else if isFunction v then
          "<function>"
        else if isDerivation v then
          "<derivation ${v.name or "???"}>"
        else if isList v then
          if v == [ ] then
            "[ ]"
          else
            "[${opening}${concatMapStringsSep opening (go "${indent}  ") v}${closing}]"
        else if isAttrs v then
          if v == { } then
            "{ }"
          else
            "{${opening}${
              concatStringsSep opening (mapAttrsToList (n: x: "${showOption [ n ]} = ${go "${indent}  " x};") v)
            }${closing}}"
        else
          toJSON v;
    in
    go "";
}
