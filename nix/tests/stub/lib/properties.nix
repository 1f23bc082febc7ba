# The properties mkIf, mkMerge, mkOverride and so on, and their resolution.
# `own` holds the definitions of all files in this directory.
own:
let
  inherit (builtins)
    concatMap
    isBool
    map
    mapAttrs
    ;
  inherit (own) isTypeOf;
in
rec {
  mkIf = condition: content: {
    _type = "if";
    inherit condition content;
  };
  mkMerge = contents: {
    _type = "merge";
    inherit contents;
  };
  mkOverride = priority: content: {
    _type = "override";
    inherit priority content;
  };
  mkOptionDefault = mkOverride 1500;
  mkDefault = mkOverride 1000;
  mkForce = mkOverride 50;
  mkOrder = priority: content: {
    _type = "order";
    inherit priority content;
  };
  mkBefore = mkOrder 500;
  mkAfter = mkOrder 1500;

  # a set with properties at its top -> list of plain sets with the properties moved inside
  pushDown =
    c:
    if isTypeOf "merge" c then
      concatMap pushDown c.contents
    else if isTypeOf "if" c then
      map (mapAttrs (_: mkIf c.condition)) (pushDown c.content)
    else if isTypeOf "override" c then
      map (mapAttrs (_: mkOverride c.priority)) (pushDown c.content)
    else
      [ c ];
  # a value with properties -> list of values (override and order still on them)
  discharge =
    v:
    if isTypeOf "merge" v then
      concatMap discharge v.contents
    else if isTypeOf "if" v then
      if isBool v.condition then
        (if v.condition then discharge v.content else [ ])
      else
        throw "'mkIf' called with a non-Boolean condition"
    else
      [ v ];
}
