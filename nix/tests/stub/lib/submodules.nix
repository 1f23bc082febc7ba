# The type of values that are modules themselves.
# `own` is all that the files beside this one have.
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
}
