# The merging of several definitions into one value.
# `own` holds the definitions of all files in this directory.
own:
let
  inherit (builtins)
    all
    any
    concatLists
    concatStringsSep
    foldl'
    head
    isAttrs
    isBool
    isFunction
    isInt
    isList
    isString
    length
    map
    ;
  inherit (own) id showDefs showOption;
in
rec {
  conflict =
    loc: defs:
    throw "The option `${showOption loc}' has conflicting definition values:${showDefs defs}\nUse `lib.mkForce value` or `lib.mkDefault value` to change the priority on any of these definitions.";
  mergeEqual =
    loc: defs:
    if all (d: d.value == (head defs).value) defs then (head defs).value else conflict loc defs;
  mergeOne =
    loc: defs:
    if length defs == 1 then
      (head defs).value
    else
      throw "The option `${showOption loc}' is defined multiple times while it's expected to be unique.\nDefinition values:${showDefs defs}";
  mergeDefault =
    loc: defs:
    let
      vs = map (d: d.value) defs;
    in
    if length vs == 1 then
      head vs
    else if all isFunction vs then
      x:
      mergeDefault loc (
        map (f: {
          file = "";
          value = f x;
        }) vs
      )
    else if all isList vs then
      concatLists vs
    else if all isAttrs vs then
      foldl' (a: b: a // b) { } vs
    else if all isBool vs then
      any id vs
    else if all isString vs then
      concatStringsSep "" vs
    else if all isInt vs && all (v: v == head vs) vs then
      head vs
    else
      throw "Cannot merge definitions of `${showOption loc}'. Definition values:${showDefs defs}";
}
