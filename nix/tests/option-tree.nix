# Every option of services.metamcp.settings as plain data, for schema.jq: its path, its
# default, and the probe values that it accepts.
{ lib, probes }:
let
  pkgs = import ./stub/pkgs.nix { inherit lib; };
  format = pkgs.formats.toml { };

  inherit
    (lib.evalModules {
      modules = [
        {
          options.settings = lib.mkOption {
            type = lib.types.submodule (import ../settings.nix { inherit format lib; });
          };
        }
      ];
    })
    options
    ;

  # The options of a tree, including those of submodules.
  below =
    tree:
    if tree._type or null == "option" then
      lib.optional (!(tree.internal or false)) tree ++ below (tree.type.getSubOptions tree.loc)
    else
      lib.concatMap (name: below tree.${name}) (
        builtins.filter (name: name != "_module" && name != "_freeformOptions") (lib.attrNames tree)
      );

  # The values of an enum, which the probes do not contain.
  enumValues =
    type:
    if type.name == "enum" then
      type.functor.payload.values
    else if type.name == "listOf" then
      map (value: [ value ]) (enumValues type.nestedTypes.elemType)
    else
      [ ];

  # True if an option accepts a value. The elements of a list or table are checked only
  # when it is merged.
  accepts =
    type: value:
    if builtins.isList value || builtins.isAttrs value then
      (builtins.tryEval (
        builtins.deepSeq
          (lib.evalModules {
            modules = [
              {
                options.probed = lib.mkOption { inherit type; };
                config.probed = value;
              }
            ];
          }).config.probed
          true
      )).success
    # A submodule accepts a path as the path of a module.
    else if builtins.isString value && lib.hasPrefix "/" value && type.getSubOptions [ ] != { } then
      false
    else
      type.check value;

  describe =
    option:
    let
      values = probes ++ enumValues option.type;
    in
    {
      # The path below "settings", with "*" for any name.
      path = map (part: if part == "<name>" then "*" else part) (builtins.tail option.loc);
      hasDefault = option ? default;
      hasDescription = option ? description;
      hasExample = option ? example;
      # A literalExpression is Nix code and not a value.
      isExampleRight = option ? example -> option.example ? _type || accepts option.type option.example;
      default = option.default or null;
      accepted = builtins.filter (accepts option.type) values;
      refused = builtins.filter (value: !accepts option.type value) values;
    };
in
map describe (builtins.filter (option: builtins.length option.loc > 1) (below options))
