# A `lib` for machines without nixpkgs: a small module system and the functions
# that our module, package and flake use, written from the documented behaviour
# of the originals.
#
# As in nixpkgs: imports; options, config and shorthand modules; mkIf, mkMerge,
# mkDefault, mkForce, mkOverride, mkBefore, mkAfter; the types below; submodules,
# freeformType, apply, readOnly; the wording of "does not exist", "is not of
# type" and "no value defined".  Left out: disabledModules, options that are
# declared twice, documentation.
let
  inherit (builtins)
    all
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    foldl'
    functionArgs
    genList
    head
    isAttrs
    isBool
    isFloat
    isFunction
    isInt
    isList
    isPath
    isString
    length
    listToAttrs
    map
    mapAttrs
    match
    removeAttrs
    replaceStrings
    sort
    stringLength
    substring
    tail
    toJSON
    toString
    tryEval
    typeOf
    ;

  # ------------------------------------------------------------------ helpers
  id = x: x;
  toList = x: if isList x then x else [ x ];
  optional = c: x: if c then [ x ] else [ ];
  optionals = c: x: if c then x else [ ];
  optionalString = c: s: if c then s else "";
  optionalAttrs = c: x: if c then x else { };
  nameValuePair = name: value: { inherit name value; };
  mapAttrs' = f: s: listToAttrs (map (n: f n s.${n}) (attrNames s));
  mapAttrsToList = f: s: map (n: f n s.${n}) (attrNames s);
  filterAttrs =
    p: s: listToAttrs (concatMap (n: optional (p n s.${n}) (nameValuePair n s.${n})) (attrNames s));
  genAttrs = names: f: listToAttrs (map (n: nameValuePair n (f n)) names);
  unique = foldl' (acc: x: if elem x acc then acc else acc ++ [ x ]) [ ];
  hasPrefix = p: s: substring 0 (stringLength p) s == p;
  hasSuffix =
    p: s:
    let
      n = stringLength s;
      k = stringLength p;
    in
    n >= k && substring (n - k) k s == p;
  removePrefix = p: s: if hasPrefix p s then substring (stringLength p) (stringLength s) s else s;
  removeSuffix = p: s: if hasSuffix p s then substring 0 (stringLength s - stringLength p) s else s;
  concatMapStringsSep =
    sep: f: l:
    concatStringsSep sep (map f l);
  concatMapStrings = concatMapStringsSep "";
  concatStrings = concatStringsSep "";
  escapeShellArg =
    arg:
    let
      text = toString arg;
    in
    if match "[[:alnum:],._+:@%/-]+" text != null then
      text
    else
      "'${replaceStrings [ "'" ] [ "'\\''" ] text}'";
  escapeShellArgs = concatMapStringsSep " " escapeShellArg;
  last = l: elemAt l (length l - 1);
  splitString = separator: text: filter isString (builtins.split (escapeRegex separator) text);
  toInt =
    text:
    let
      digits = match "[[:space:]]*(-?[[:digit:]]+)[[:space:]]*" text;
    in
    if digits == null then
      throw "toInt: Could not convert ${toJSON text} to int."
    else if match "0[[:digit:]]+" (head digits) != null then
      throw "toInt: Ambiguity in interpretation of ${toJSON text} between octal and zero padded integer."
    else
      builtins.fromJSON (head digits);
  setAttrByPath = p: v: if p == [ ] then v else { ${head p} = setAttrByPath (tail p) v; };
  attrByPath =
    p: d: s:
    if p == [ ] then
      s
    else if isAttrs s && s ? ${head p} then
      attrByPath (tail p) d s.${head p}
    else
      d;
  getBin = package: package.bin or package.out or package;
  isDerivation = x: isAttrs x && x.type or null == "derivation";
  recursiveUpdate =
    a: b:
    if isAttrs a && isAttrs b && !isDerivation a && !isDerivation b then
      a // mapAttrs (n: v: if a ? ${n} then recursiveUpdate a.${n} v else v) b
    else
      b;
  imap =
    start: f: l:
    genList (i: f (i + start) (elemAt l i)) (length l);
  isStringLike = x: isString x || isPath x || isAttrs x && (x ? outPath || x ? __toString);
  hasInfix = infix: s: length (builtins.split (escapeRegex infix) s) > 1;
  escapeRegex =
    let
      special = [
        "\\"
        "["
        "{"
        "("
        ")"
        "^"
        "$"
        "?"
        "*"
        "+"
        "|"
        "."
      ];
    in
    replaceStrings special (map (c: "\\${c}") special);
  lowerCase = genList (i: substring i 1 "abcdefghijklmnopqrstuvwxyz") 26;
  upperCase = genList (i: substring i 1 "ABCDEFGHIJKLMNOPQRSTUVWXYZ") 26;
  toUpper = replaceStrings lowerCase upperCase;
  toLower = replaceStrings upperCase lowerCase;
  # A source is the directory itself, as long as every part of it exists.
  fileset = {
    fileFilter = _: path: path;
    unions = paths: filter (p: builtins.pathExists p || throw "${toString p} does not exist") paths;
    toSource = { root, fileset }: if length fileset > 0 then root else throw "empty fileset";
  };
  isTypeOf = t: x: isAttrs x && x._type or null == t;
  showOption =
    loc:
    concatStringsSep "." (
      map (
        p: if match "[a-zA-Z_][a-zA-Z0-9_'-]*" p != null || match "[*]|<.*>" p != null then p else toJSON p
      ) loc
    );
  showFiles = concatMapStringsSep " and " (f: "`${toString f}'");
  pretty =
    v:
    let
      r = tryEval (
        toJSON (
          if isFunction v then
            "<function>"
          else if isDerivation v then
            "<derivation ${v.name or "?"}>"
          else
            v
        )
      );
    in
    if isFunction v then
      "<function>"
    else if r.success then
      r.value
    else
      "<unprintable>";
  showDefs = concatMapStrings (d: "\n- In `${toString d.file}': ${pretty d.value}");

  # --------------------------------------------------------------- properties
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

  # ------------------------------------------------------------------ options
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

  # Every option below `options`, and below those that hold submodules, as a list
  # of what documentation says of it.
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
  # A value as Nix.
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
        inherit (merged) highestPrio definitions;
        value = (opt.apply or id) merged.value;
        _type = "option";
      };

  # ------------------------------------------------------------------ modules
  structured = [
    "_class"
    "_file"
    "key"
    "imports"
    "options"
    "config"
    "meta"
    "freeformType"
    "disabledModules"
    "require"
  ];
  normalise =
    file: m:
    if m ? options || m ? config then
      let
        bad = removeAttrs m structured;
      in
      if bad != { } then
        throw "Module `${toString file}' has an unsupported attribute `${head (attrNames bad)}'. This is caused by introducing a top-level `config' or `options' attribute. Add configuration attributes immediately on the top level instead, or move all of them (namely: ${concatStringsSep " " (attrNames bad)}) into the explicit `config' attribute."
      else
        {
          imports = m.imports or [ ];
          options = m.options or { };
          config = mkMerge (
            [ (m.config or { }) ]
            ++ optional (m ? meta) { inherit (m) meta; }
            ++ optional (m ? freeformType) { _module.freeformType = m.freeformType; }
          );
        }
    else
      {
        imports = m.imports or [ ];
        options = { };
        config = mkMerge (
          [
            (removeAttrs m [
              "_class"
              "_file"
              "key"
              "imports"
              "disabledModules"
              "require"
              "freeformType"
            ])
          ]
          ++ optional (m ? freeformType) { _module.freeformType = m.freeformType; }
        );
      };

  evalModules =
    {
      modules,
      specialArgs ? { },
      prefix ? [ ],
      class ? null,
      ...
    }:
    let
      special = {
        lib = self;
        inherit config options;
      }
      // specialArgs;
      callIf =
        file: f:
        if isFunction f then
          f (
            special
            // mapAttrs (
              n: _:
              special.${n} or config._module.args.${n}
                or (throw "attribute '${n}' missing: no module argument of that name (for ${toString file})")
            ) (functionArgs f)
          )
        else
          f;

      # A module, and those that it imports.
      load =
        parent: i: m:
        let
          isP = isPath m || isString m;
          file0 = if isP then toString m else parent;
          raw = callIf file0 (if isP then import m else m);
          file = if isAttrs raw && raw ? _file then raw._file else file0;
          n = normalise file raw;
          key = toString (raw.key or (if isP then toString m else "${parent}:anon-${toString i}"));
        in
        if !(isAttrs raw) then
          throw "Expected a module, but found a value of type ${typeOf raw}, while trying to load a module into a submodule or the top level, at ${toString file}"
        else
          {
            inherit file key;
            inherit (n) options config;
            imports = imap 1 (load key) n.imports;
          };
      # Each module once, and what it imports after all that stand beside it.
      # nixpkgs hands their definitions on with the last module first.
      loaded = reverse (
        builtins.genericClosure {
          startSet = imap 1 (load "<unknown-file>") ([ internal ] ++ modules);
          operator = m: m.imports;
        }
      );
      reverse = l: genList (i: elemAt l (length l - 1 - i)) (length l);

      internal = {
        _file = "lib.nix";
        key = "stub-lib-internal";
        options._module = {
          args = mkOption {
            type = types.lazyAttrsOf types.raw;
            internal = prefix != [ ];
            default = { };
          };
          check = mkOption {
            type = types.bool;
            internal = true;
            default = true;
          };
          freeformType = mkOption {
            type = types.nullOr types.optionType;
            internal = true;
            default = null;
          };
        };
      };

      merged = mergeModules prefix (map (m: { inherit (m) file options; }) loaded) (
        concatMap (
          m:
          map (value: {
            inherit (m) file;
            inherit value;
          }) (pushDown m.config)
        ) loaded
      );

      free = merged.config._module.freeformType;
      freeform =
        let
          defs = map (d: {
            inherit (d) file;
            value = setAttrByPath d.path d.value;
          }) merged.unmatched;
        in
        if defs == [ ] then { } else (mergeDefinitions prefix free defs).value;
      declared = if free == null then merged.config else recursiveUpdate freeform merged.config;
      checked =
        if merged.config._module.check && free == null && merged.unmatched != [ ] then
          let
            d = head merged.unmatched;
          in
          throw "The option `${showOption (prefix ++ d.path)}' does not exist. Definition values:${showDefs [ d ]}"
        else
          declared;
      config = removeAttrs checked [ "_module" ] // {
        _module = merged.config._module;
      };
      options = merged.options;
    in
    {
      inherit options;
      config = removeAttrs config [ "_module" ];
      _module = merged.config._module;
      extendModules =
        a:
        evalModules {
          modules = modules ++ a.modules or [ ];
          specialArgs = specialArgs // a.specialArgs or { };
          inherit prefix;
        };
      type = submoduleType modules specialArgs;
      _type = "configuration";
    };

  mergeModules =
    prefix: decls: defs:
    let
      names = unique (concatMap (d: attrNames d.options) decls);
      byName = genAttrs names (
        n:
        let
          loc = prefix ++ [ n ];
          ds = filter (d: d.options ? ${n}) decls;
          vs = concatMap (
            d:
            optional (d.value ? ${n}) {
              inherit (d) file;
              value = d.value.${n};
            }
          ) defs;
          opts = filter (d: isOption d.options.${n}) ds;
          sub =
            mergeModules loc
              (map (d: {
                inherit (d) file;
                options = d.options.${n};
              }) ds)
              (
                concatMap (
                  d:
                  map (
                    value:
                    if isAttrs value then
                      {
                        inherit (d) file;
                        inherit value;
                      }
                    else
                      throw "In module `${toString d.file}', you're trying to define a value of type `${typeOf value}'\nrather than an attribute set for the option\n`${showOption loc}'!"
                  ) (pushDown d.value)
                ) vs
              );
          o = evalOption loc (map (d: {
            inherit (d) file;
            option = d.options.${n};
          }) opts) vs;
        in
        if length opts == length ds then
          {
            options = o;
            config = o.value;
            unmatched = [ ];
          }
        else if opts == [ ] then
          {
            inherit (sub) options config;
            unmatched = map (u: u // { path = [ n ] ++ u.path; }) sub.unmatched;
          }
        else
          throw "The option `${showOption loc}' is a prefix of other options and an option itself"
      );
      here = concatMap (
        d:
        map (n: {
          inherit (d) file;
          path = [ n ];
          value = d.value.${n};
        }) (filter (n: !(byName ? ${n})) (attrNames d.value))
      ) defs;
    in
    {
      options = mapAttrs (_: x: x.options) byName;
      config = mapAttrs (_: x: x.config) byName;
      unmatched = here ++ concatMap (n: byName.${n}.unmatched) names;
    };

  # -------------------------------------------------------------------- types
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
  simple =
    name: description: check:
    mkOptionType {
      inherit name description check;
      descriptionClass = "noun";
      merge = mergeEqual;
    };
  # The description of a type as part of another's: in brackets, unless it is of
  # a class that reads well there.
  phrase =
    classes: t:
    if elem (t.descriptionClass or null) classes then t.description else "(${t.description})";

  submoduleType =
    modules: specialArgs:
    let
      # As it is where there is no value, and so no name.
      described =
        prefix:
        evalModules {
          inherit prefix specialArgs;
          modules = modules ++ [
            {
              _file = "submodule";
              key = "submodule-name";
              config._module.args.name = mkOptionDefault "‹name›";
              config._module.check = mkForce false;
            }
          ];
        };
      free = (described [ ])._module.freeformType;
    in
    mkOptionType {
      name = "submodule";
      description =
        if free ? description then
          "open submodule of ${
            phrase [
              "noun"
              "composite"
            ] free
          }"
        else
          "submodule";
      getSubOptions = prefix: (described prefix).options;
      check = x: isAttrs x || isFunction x || isPath x;
      mergeEmpty = loc: (submoduleType modules specialArgs).merge loc [ ];
      merge =
        loc: defs:
        (evalModules {
          inherit specialArgs;
          prefix = loc;
          modules =
            modules
            ++ [
              {
                _file = "submodule";
                key = "submodule-name";
                config._module.args.name = if loc == [ ] then "" else elemAt loc (length loc - 1);
              }
            ]
            # a plain set is configuration, whatever its attributes are called
            ++ map (
              d:
              if isAttrs d.value then
                {
                  _file = d.file;
                  config = d.value;
                }
              else
                {
                  _file = d.file;
                  imports = [ d.value ];
                }
            ) defs;
        }).config;
    };

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
    # What is accepted before is made into what is wanted.
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

  self = {
    inherit (builtins)
      all
      any
      attrNames
      attrValues
      concatLists
      concatMap
      concatStringsSep
      elem
      elemAt
      filter
      foldl'
      groupBy
      head
      isFunction
      isList
      isString
      listToAttrs
      mapAttrs
      readFile
      replaceStrings
      tail
      ;
    inherit
      concatMapStrings
      concatMapStringsSep
      concatStrings
      escapeShellArg
      escapeShellArgs
      evalModules
      fileset
      filterAttrs
      genAttrs
      hasInfix
      hasPrefix
      hasSuffix
      id
      last
      literalExpression
      literalMD
      mapAttrs'
      mapAttrsToList
      mkAfter
      mkBefore
      mkDefault
      mkEnableOption
      mkForce
      mkIf
      mkMerge
      mkOption
      mkOptionType
      mkOrder
      mkOverride
      mkPackageOption
      nameValuePair
      optionAttrSetToDocList
      optional
      optionalAttrs
      optionalString
      optionals
      recursiveUpdate
      removePrefix
      removeSuffix
      showOption
      splitString
      toInt
      toList
      toLower
      toUpper
      types
      unique
      ;
    boolToString = b: if b then "true" else "false";
    concatMapAttrs = f: s: foldl' (a: b: a // b) { } (mapAttrsToList f s);
    mergeEqualOption = mergeEqual;
    inherit getBin;
    getExe = package: "${getBin package}/bin/${package.meta.mainProgram}";
    getExe' = package: name: "${getBin package}/bin/${name}";
    importTOML = path: builtins.fromTOML (builtins.readFile path);
    licenses = {
      asl20.spdxId = "Apache-2.0";
      mit.spdxId = "MIT";
    };
    platforms.linux = [
      "x86_64-linux"
      "aarch64-linux"
    ];
  };
in
self
