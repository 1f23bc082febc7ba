# The type of values that are modules: submodules.
# `own` holds the definitions of all files in this directory.
own:
let
  inherit (builtins)
    elemAt
    isAttrs
    isFunction
    isPath
    length
    map
    ;
  inherit (own)
    evalModules
    mkForce
    mkOptionDefault
    mkOptionType
    phrase
    ;
in
rec {
  submoduleType =
    modules: specialArgs:
    let
      # The submodule without a value, and therefore without a name.
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
            # A plain set is configuration, even if it has an attribute `config` or `options`.
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
}
