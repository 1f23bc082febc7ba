# Cases for nixpkgs' lib: modules.
{
  evaluate,
  lib,
  merge,
  option,
  optional,
  server,
  value,
  ...
}:
let
  inherit (lib) mkOption types;
in
{
  "an option has its default, and a definition replaces it" = {
    expr = evaluate [
      {
        options.a = optional types.int 1;
        options.b = optional types.int (throw "not needed");
      }
      { b = 2; }
    ];
    expected = {
      a = 1;
      b = 2;
    };
  };
  "a module is a set, a function or a list entry of imports" = {
    expr = evaluate [
      (
        { lib, config, ... }:
        {
          imports = [
            { options.a = lib.mkOption { type = lib.types.int; }; }
            ({ ... }: { a = 1; })
          ];
          options.b = lib.mkOption { default = config.a + 1; };
        }
      )
    ];
    expected = {
      a = 1;
      b = 2;
    };
  };
  "arguments of modules come from _module.args" = {
    expr = evaluate [
      { _module.args.port = 12011; }
      ({ port, ... }: { options.a = optional types.int port; })
    ];
    expected = {
      a = 12011;
    };
  };
  "the definitions of a list begin with the last module" = {
    expr = merge (types.listOf types.int) [
      [ 1 ]
      [ 2 ]
      [
        3
        4
      ]
    ];
    expected = [
      3
      4
      2
      1
    ];
  };
  "imported definitions come before those of the importing module" = {
    expr = evaluate [
      { options.it = option (types.listOf types.int); }
      {
        imports = [
          { it = [ 2 ]; }
          {
            imports = [ { it = [ 4 ]; } ];
            it = [ 3 ];
          }
        ];
        it = [ 1 ];
      }
      { it = [ 5 ]; }
    ];
    expected = {
      it = [
        4
        3
        2
        5
        1
      ];
    };
  };
  "mkBefore, mkAfter and mkOrder sort definitions" = {
    expr = merge (types.listOf types.int) [
      (lib.mkAfter [ 1 ])
      [ 2 ]
      (lib.mkBefore [ 3 ])
      (lib.mkOrder 900 [ 4 ])
      [ 5 ]
    ];
    expected = [
      3
      4
      5
      2
      1
    ];
  };
  "mkBefore and mkAfter sort lines" = {
    expr = merge types.lines [
      "a"
      (lib.mkAfter "z\n")
      (lib.mkBefore "0")
    ];
    expected = ''
      0
      a
      z
    '';
  };
  "the definition with the highest priority wins" = {
    expr =
      lib.mapAttrs
        (
          _: definitions:
          (evaluate ([ { options.it = optional types.int 0; } ] ++ map (it: { inherit it; }) definitions)).it
        )
        {
          byDefault = [ ];
          mkDefault = [ (lib.mkDefault 1) ];
          plain = [
            (lib.mkDefault 1)
            2
          ];
          mkForce = [
            (lib.mkForce 3)
            2
            (lib.mkDefault 1)
          ];
          mkOverride = [
            (lib.mkForce 3)
            (lib.mkOverride 10 4)
          ];
          mkOptionDefault = [
            (lib.mkDefault 1)
            (lib.mkOverride 1400 5)
          ];
        };
    expected = {
      byDefault = 0;
      mkDefault = 1;
      mkForce = 3;
      mkOptionDefault = 1;
      mkOverride = 4;
      plain = 2;
    };
  };
  "mkIf and mkMerge are resolved at every level" = {
    expr = evaluate [
      {
        options.a = optional (types.listOf types.int) [ ];
        options.b.c = optional (types.attrsOf types.int) { };
      }
      (lib.mkIf true { a = [ 1 ]; })
      (lib.mkIf false { a = throw "not needed"; })
      {
        a = lib.mkMerge [
          [ 3 ]
          (lib.mkIf false [ 4 ])
          (lib.mkIf true (lib.mkAfter [ 5 ]))
        ];
        b = lib.mkMerge [
          { c.x = 1; }
          (lib.mkIf true {
            c = lib.mkIf true {
              y = 2;
              z = lib.mkIf false 3;
            };
          })
        ];
      }
    ];
    expected = {
      a = [
        3
        1
        5
      ];
      b = {
        c = {
          x = 1;
          y = 2;
        };
      };
    };
  };
  "a condition may depend on another option" = {
    expr = evaluate [
      (
        { config, ... }:
        {
          options.enable = optional types.bool false;
          options.a = optional (types.listOf types.int) [ ];
          config = lib.mkIf config.enable { a = [ 1 ]; };
        }
      )
      { enable = true; }
    ];
    expected = {
      a = [
        1
      ];
      enable = true;
    };
  };
  "mkDefault applies to each key of a set separately" = {
    expr = merge (types.attrsOf (types.submodule server)) [
      {
        clock = lib.mapAttrs (_: lib.mkDefault) {
          command = "clock";
          args = [ "--utc" ];
        };
      }
      { clock.args = [ "--local" ]; }
      { clock.env.TZ = "CET"; }
    ];
    expected = {
      clock = {
        args = [
          "--local"
        ];
        command = "clock";
        env = {
          TZ = "CET";
        };
      };
    };
  };
  "any definition of a set overrides mkDefault on the whole set" = {
    expr = merge (types.attrsOf types.int) [
      (lib.mkDefault { a = 1; })
      { b = 2; }
    ];
    expected = {
      b = 2;
    };
  };
  "apply changes the value that readers get" = {
    expr = evaluate [
      {
        options.a = mkOption {
          type = types.int;
          apply = toString;
        };
      }
      { a = 4; }
    ];
    expected = {
      a = "4";
    };
  };
  "a read-only option may be set once" = {
    expr = evaluate [
      {
        options.a = mkOption {
          type = types.int;
          readOnly = true;
        };
      }
      { a = 4; }
    ];
    expected = {
      a = 4;
    };
  };
  "options know whether they are defined, and their path" = {
    expr =
      let
        inherit
          (lib.evalModules {
            modules = [
              {
                options.a.b = option types.int;
                options.a.c = option types.int;
                options.a.d = optional types.int 1;
              }
              { a.b = 1; }
            ];
          })
          options
          ;
      in
      {
        defined = lib.mapAttrs (_: option: option.isDefined) options.a;
        inherit (options.a.b) loc value;
        others = [
          (options ? a)
          (options.a ? e)
        ];
      };
    expected = {
      defined = {
        b = true;
        c = false;
        d = true;
      };
      loc = [
        "a"
        "b"
      ];
      others = [
        true
        false
      ];
      value = 1;
    };
  };
  "options know where they are defined" = {
    expr =
      (lib.evalModules {
        modules = [
          { options.a = optional (types.attrsOf types.int) { }; }
          {
            _file = "/etc/one.nix";
            a.x = lib.mkDefault 1;
          }
          (lib.mkIf true { a.y = 2; })
          {
            _file = "/etc/none.nix";
            config = lib.mkIf false { a.z = 3; };
          }
        ];
      }).options.a.definitionsWithLocations;
    expected = [
      {
        file = "<unknown-file>";
        value.y = 2;
      }
      {
        file = "/etc/one.nix";
        value.x = lib.mkDefault 1;
      }
    ];
  };
  "priority distinguishes a default from a definition" = {
    expr =
      let
        inherit
          (lib.evalModules {
            modules = [
              {
                options.a = optional types.int 1;
                options.b = optional types.int 1;
                options.c = optional types.int 1;
              }
              {
                b = lib.mkDefault 1;
                c = 1;
              }
            ];
          })
          options
          ;
      in
      lib.mapAttrs (_: option: option.highestPrio) { inherit (options) a b c; };
    expected = {
      a = 1500;
      b = 1000;
      c = 100;
    };
  };
  "an evaluation is extended by further modules" = {
    expr =
      ((lib.evalModules { modules = [ { options.a = optional types.int 1; } ]; }).extendModules {
        modules = [ { a = 2; } ];
      }).config;
    expected = {
      a = 2;
    };
  };
  "without checks an undeclared option is left out" = {
    expr =
      (evaluate [
        { _module.check = false; }
        { options.a = optional types.int 1; }
        { b = 2; }
      ]).a;
    expected = 1;
  };
  "a module with options and without config may have meta" = {
    expr = evaluate [
      { options.meta = optional types.unspecified { }; }
      {
        options.a = optional types.int 1;
        config.a = 2;
        meta.maintainers = [ ];
      }
    ];
    expected = {
      a = 2;
      meta = {
        maintainers = [ ];
      };
    };
  };
}
