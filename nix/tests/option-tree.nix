# Every option of services.metamcp.settings as plain data, for schema.jq: where it
# is, what its default is, and which of the probes it takes.
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

  # The options in a tree of them, and those in the submodules that they hold.
  below =
    tree:
    if tree._type or null == "option" then
      lib.optional (!(tree.internal or false)) tree ++ below (tree.type.getSubOptions tree.loc)
    else
      lib.concatMap (name: below tree.${name}) (
        builtins.filter (name: name != "_module" && name != "_freeformOptions") (lib.attrNames tree)
      );

  # The words that a choice knows, which no probe can guess.
  words =
    type:
    if type.name == "enum" then
      type.functor.payload.values
    else if type.name == "listOf" then
      map (word: [ word ]) (words type.nestedTypes.elemType)
    else
      [ ];

  # Whether a value can be given to an option.  What a list or table holds is
  # looked at only when it is merged.
  takes =
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
    # The path of a module, which a submodule takes for what is in the file.
    else if builtins.isString value && lib.hasPrefix "/" value && type.getSubOptions [ ] != { } then
      false
    else
      type.check value;

  describe =
    option:
    let
      found = probes ++ words option.type;
    in
    {
      # Below "settings", with "*" for any name.
      path = map (part: if part == "<name>" then "*" else part) (builtins.tail option.loc);
      hasDefault = option ? default;
      hasDescription = option ? description;
      hasExample = option ? example;
      # One that is Nix to be read is not a value.
      isExampleRight = option ? example -> option.example ? _type || takes option.type option.example;
      default = option.default or null;
      taken = builtins.filter (takes option.type) found;
      refused = builtins.filter (value: !takes option.type value) found;
    };
in
map describe (builtins.filter (option: builtins.length option.loc > 1) (below options))
