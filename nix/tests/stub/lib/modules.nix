# The evaluation of modules.
# `own` holds the definitions of all files in this directory.
own:
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    elemAt
    filter
    functionArgs
    genList
    head
    isAttrs
    isFunction
    isPath
    isString
    length
    map
    mapAttrs
    removeAttrs
    toString
    typeOf
    ;
  inherit (own)
    evalOption
    genAttrs
    imap
    isOption
    mergeDefinitions
    mkMerge
    mkOption
    optional
    pushDown
    recursiveUpdate
    setAttrByPath
    showDefs
    showOption
    submoduleType
    types
    unique
    ;
in
rec {
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
        inherit (own) lib;
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

      # A module and its imports.
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
      # Each module once, breadth first: its imports come after its siblings. nixpkgs
      # collects the definitions with the last module first.
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
}
