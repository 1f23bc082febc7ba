# Options, and the values of their definitions.
# `own` holds the definitions of all files in this directory.
own:
let
  inherit (builtins)
    any
    concatMap
    concatStringsSep
    elemAt
    filter
    foldl'
    head
    isList
    length
    map
    sort
    tail
    toString
    ;
  inherit (own)
    attrByPath
    discharge
    id
    imap
    isTypeOf
    mkOptionDefault
    optional
    optionalAttrs
    optionalString
    showDefs
    showFiles
    showOption
    toList
    types
    ;
in
rec {
  mkOption = attrs: attrs // { _type = "option"; };
  isOption = isTypeOf "option";
  mkEnableOption =
    name:
    mkOption {
      type = types.bool;
      default = false;
      example = true;
      description = "Whether to enable ${name}.";
    };
  mkPackageOption =
    pkgs: name:
    {
      nullable ? false,
      default ? name,
      example ? null,
      pkgsText ? "pkgs",
      extraDescription ? "",
    }:
    let
      path = toList default;
      dotted = concatStringsSep "." path;
    in
    mkOption (
      {
        type = if nullable then types.nullOr types.package else types.package;
        description =
          "The ${if isList name then elemAt name (length name - 1) else name} package to use."
          + optionalString (extraDescription != "") " ${extraDescription}";
      }
      // optionalAttrs (default != null) {
        default = attrByPath path (throw "${dotted} cannot be found in ${pkgsText}") pkgs;
        defaultText = literalExpression "${pkgsText}.${dotted}";
      }
      // optionalAttrs (default == null && nullable) { default = null; }
      // optionalAttrs (example != null) {
        example = literalExpression (
          if isList example then "${pkgsText}.${concatStringsSep "." example}" else example
        );
      }
    );
  literalExpression = text: {
    _type = "literalExpression";
    inherit text;
  };
  literalMD = text: {
    _type = "literalMD";
    inherit text;
  };

  # Definitions of one value: [{ file; value; }] -> { defined; value; }
  mergeDefinitions =
    loc: type: defs:
    let
      discharged = concatMap (
        d:
        map (value: {
          inherit (d) file;
          inherit value;
        }) (discharge d.value)
      ) defs;
      prio = d: if isTypeOf "override" d.value then d.value.priority else 100;
      best = foldl' (p: d: if prio d < p then prio d else p) 9999 discharged;
      strip = d: d // { value = if isTypeOf "override" d.value then d.value.content else d.value; };
      kept = map strip (filter (d: prio d == best) discharged);
      order = d: if isTypeOf "order" d.value then d.value.priority else 1000;
      sorted =
        if any (d: isTypeOf "order" d.value) kept then
          map (d: if isTypeOf "order" d.value then d // { value = d.value.content; } else d) (
            stableSort order kept
          )
        else
          kept;
      bad = filter (d: !type.check d.value) sorted;
      defined = sorted != [ ];
    in
    {
      inherit defined;
      highestPrio = best;
      definitions = map (d: d.value) sorted;
      definitionsWithLocations = sorted;
      value =
        if defined then
          if bad == [ ] then
            type.merge loc sorted
          else
            throw "A definition for option `${showOption loc}' is not of type `${type.description}'. Definition values:${showDefs bad}"
        else if type ? mergeEmpty then
          type.mergeEmpty loc
        else if type.emptyValue ? value then
          type.emptyValue.value
        else
          throw "The option `${showOption loc}' was accessed but has no value defined. Try setting the option.";
    };
  stableSort =
    key: l:
    map (x: x.v) (
      sort (a: b: a.k < b.k || a.k == b.k && a.i < b.i) (
        imap 0 (i: v: {
          inherit i v;
          k = key v;
        }) l
      )
    );

  evalOption =
    loc: decls: defs:
    let
      opt = foldl' (a: d: a // d.option) { } decls;
      type = opt.type or types.unspecified;
      declFile = (head decls).file;
      withDefault =
        optional (opt ? default) {
          file = declFile;
          value = mkOptionDefault opt.default;
        }
        ++ defs;
      merged = mergeDefinitions loc type withDefault;
      many = length decls > 1 && length (filter (d: d.option ? type) decls) > 1;
    in
    if many then
      throw "The option `${showOption loc}' in `${toString (head decls).file}' is already declared in ${
        showFiles (map (d: d.file) (tail decls))
      }."
    else if (opt.readOnly or false) && length defs > 1 then
      throw "The option `${showOption loc}' is read-only, but it's set multiple times. Definition values:${showDefs defs}"
    else
      opt
      // {
        inherit loc type;
        isDefined = merged.defined;
        inherit (merged) highestPrio definitions definitionsWithLocations;
        value = (opt.apply or id) merged.value;
        _type = "option";
      };
}
