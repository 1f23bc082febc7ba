# A stub of nixpkgs' `lib`, for machines without nixpkgs: a small module system and the
# functions that the modules, the package and the flake of this project use. It follows
# the documented behaviour of nixpkgs.
#
# It supports imports; options, config and shorthand modules; mkIf, mkMerge, mkDefault,
# mkForce, mkOverride, mkBefore, mkAfter; the types in lib/types.nix; submodules,
# freeformType, apply, readOnly; the messages "does not exist", "is not of type" and "no
# value defined"; the list of options for documentation. It does not support
# disabledModules and options that are declared twice.
let
  # The definitions of all files in stub/lib, which use each other.
  own =
    import ./lib/functions.nix
    // import ./lib/properties.nix own
    // import ./lib/options.nix own
    // import ./lib/documentation.nix own
    // import ./lib/modules.nix own
    // import ./lib/types.nix own
    // import ./lib/merging.nix own
    // import ./lib/submodules.nix own
    // {
      inherit lib;
    };

  lib = {
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
    inherit (own)
      concatMapStrings
      concatMapStringsSep
      concatStrings
      escapeShellArg
      escapeShellArgs
      evalModules
      fileset
      filterAttrs
      genAttrs
      getBin
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
    concatMapAttrs = f: s: builtins.foldl' (a: b: a // b) { } (own.mapAttrsToList f s);
    mergeEqualOption = own.mergeEqual;
    getExe = package: "${own.getBin package}/bin/${package.meta.mainProgram}";
    getExe' = package: name: "${own.getBin package}/bin/${name}";
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
lib
