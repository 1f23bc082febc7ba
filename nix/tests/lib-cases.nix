# What nixpkgs' lib answers where our module, package and flake ask it.
#
# nix/tests/run holds the stand-in's lib (stub/lib.nix) to it, and with --lib
# nixpkgs' own, so that "the stand-in answers as the real one does" is tested by
# those who have nixpkgs and by those who have not.  Whoever uses another function
# or type of lib writes what it answers down here first, from the real one.
#
# As in NixOS 26.05.  The module works with older ones, too, which say some of this
# in other words.
{ lib }:
let
  inherit (lib) mkOption types;

  evaluate = modules: (lib.evalModules { inherit modules; }).config;
  option = type: mkOption { inherit type; };
  optional = type: default: mkOption { inherit type default; };
  # What these definitions of one option make together.
  merge =
    type: definitions:
    (evaluate ([ { options.it = option type; } ] ++ map (it: { inherit it; }) definitions)).it;

  server = {
    options = {
      command = optional (types.nullOr types.str) null;
      args = optional (types.listOf types.str) [ ];
      env = optional (types.attrsOf types.str) { };
    };
  };
  named =
    { name, config, ... }:
    {
      options.name = optional types.str name;
      options.socket = optional types.str "/run/${config.name}.sock";
    };
  toml = types.attrsOf value // {
    description = "table";
  };
  value =
    types.oneOf [
      types.bool
      types.int
      types.float
      types.str
      types.path
      (types.attrsOf value)
      (types.listOf value)
    ]
    // {
      description = "TOML value";
    };
  package = {
    type = "derivation";
    name = "hello-1.0";
    outPath = "/opt/hello";
    meta.mainProgram = "hello";
  };
  byName = {
    inherit package;
    nested.package = package;
  };
  descriptions = lib.mapAttrs (_: type: type.description);
in
{
  # { expr, expected }, as lib.runTests has them.
  values = {
    # -------------------------------------------------------------- modules
    "an option has its default, and a definition takes its place" = {
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
    "what is imported comes before what imports it, and the deepest first" = {
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
    "the strongest definition wins" = {
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
    "mkIf and mkMerge are dissolved wherever they stand" = {
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
    "a condition may ask for another option" = {
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
    "mkDefault holds for each key of a set on its own" = {
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
    "mkDefault on a whole set gives way to any definition of it" = {
      expr = merge (types.attrsOf types.int) [
        (lib.mkDefault { a = 1; })
        { b = 2; }
      ];
      expected = {
        b = 2;
      };
    };
    "apply changes what is read" = {
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
    "options know whether they are defined, and where they stand" = {
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
    "priority tells a default from a definition" = {
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

    # ------------------------------------------------------------ submodules
    "a submodule knows its name" = {
      expr = merge (types.attrsOf (types.submodule named)) [
        { clock = { }; }
        { notes.name = "paper"; }
      ];
      expected = {
        clock = {
          name = "clock";
          socket = "/run/clock.sock";
        };
        notes = {
          name = "paper";
          socket = "/run/paper.sock";
        };
      };
    };
    "a submodule of several modules has the options of all" = {
      expr = merge (types.attrsOf (
        types.submodule [
          server
          named
          { config.args = lib.mkDefault [ "--quiet" ]; }
        ]
      )) [ { clock.command = "clock"; } ];
      expected = {
        clock = {
          args = [
            "--quiet"
          ];
          command = "clock";
          env = { };
          name = "clock";
          socket = "/run/clock.sock";
        };
      };
    };
    "a submodule that nobody defines has its defaults" = {
      expr = (evaluate [ { options.it = option (types.submodule server); } ]).it;
      expected = {
        args = [ ];
        command = null;
        env = { };
      };
    };
    "a submodule may be defined by a function" = {
      expr = merge (types.submodule server) [
        (
          { config, ... }:
          {
            args = [ config.command ];
          }
        )
        { command = "clock"; }
      ];
      expected = {
        args = [
          "clock"
        ];
        command = "clock";
        env = { };
      };
    };
    "a submodule may have an option called config" = {
      expr = merge (types.submodule { options.config = option types.int; }) [ { config = 3; } ];
      expected = {
        config = 3;
      };
    };
    "a submodule reads the configuration around it" = {
      expr = evaluate [
        (
          { config, ... }:
          {
            options.user = optional types.str "alice";
            options.servers = option (
              types.attrsOf (types.submodule { options.user = optional types.str config.user; })
            );
          }
        )
        {
          user = "bob";
          servers.clock = { };
        }
      ];
      expected = {
        servers = {
          clock = {
            user = "bob";
          };
        };
        user = "bob";
      };
    };
    "null stands for a submodule that is not there" = {
      expr = evaluate [
        {
          options.a = optional (types.nullOr (types.submodule server)) null;
          options.b = optional (types.nullOr (types.submodule server)) null;
        }
        { b.command = "clock"; }
      ];
      expected = {
        a = null;
        b = {
          args = [ ];
          command = "clock";
          env = { };
        };
      };
    };
    "a free form takes what is not declared" = {
      expr =
        merge
          (types.submodule {
            freeformType = types.attrsOf value;
            options.known = optional types.str "k";
            options.table.known = optional types.int 1;
          })
          [
            {
              other = 1;
              table.other = [ true ];
            }
            {
              known = "z";
              deep.er = {
                a = 1.5;
              };
            }
            { deep.er.b = "x"; }
          ];
      expected = {
        deep = {
          er = {
            a = 1.5;
            b = "x";
          };
        };
        known = "z";
        other = 1;
        table = {
          known = 1;
          other = [
            true
          ];
        };
      };
    };
    "a free form obeys mkIf and mkDefault" = {
      expr = merge (types.submodule { freeformType = types.attrsOf value; }) [
        {
          a = lib.mkDefault 1;
          b = lib.mkIf false 2;
          c.d = lib.mkIf true 3;
        }
        {
          a = 4;
          c.e = lib.mkForce 5;
        }
      ];
      expected = {
        a = 4;
        c = {
          d = 3;
          e = 5;
        };
      };
    };
    "only what is defined is in a free form" = {
      expr = merge (types.submodule { freeformType = toml; }) [ { } ];
      expected = { };
    };

    # ----------------------------------------------------------------- types
    "types accept what they describe and nothing else" = {
      expr = lib.attrNames (
        lib.filterAttrs
          (
            _:
            {
              type,
              accepts,
              refuses,
            }:
            !lib.all type.check accepts || lib.any type.check refuses
          )
          {
            bool = {
              type = types.bool;
              accepts = [
                true
                false
              ];
              refuses = [
                0
                "true"
              ];
            };
            int = {
              type = types.int;
              accepts = [
                1
                (-1)
              ];
              refuses = [
                1.0
                "1"
              ];
            };
            float = {
              type = types.float;
              accepts = [ 1.5 ];
              refuses = [ 1 ];
            };
            number = {
              type = types.number;
              accepts = [
                1
                1.5
              ];
              refuses = [ "1" ];
            };
            unsigned = {
              type = types.ints.unsigned;
              accepts = [
                0
                1
              ];
              refuses = [ (-1) ];
            };
            positive = {
              type = types.ints.positive;
              accepts = [ 1 ];
              refuses = [
                0
                (-1)
              ];
            };
            between = {
              type = types.ints.between 1 3;
              accepts = [
                1
                3
              ];
              refuses = [
                0
                4
                2.0
              ];
            };
            numberBetween = {
              type = types.numbers.between 0 1;
              accepts = [
                0
                0.5
                1
              ];
              refuses = [
                1.5
                "1"
              ];
            };
            port = {
              type = types.port;
              accepts = [
                0
                65535
              ];
              refuses = [
                65536
                (-1)
              ];
            };
            str = {
              type = types.str;
              accepts = [
                "a"
                ""
              ];
              refuses = [
                1
                package
                /etc
              ];
            };
            nonEmptyStr = {
              type = types.nonEmptyStr;
              accepts = [ "a" ];
              refuses = [
                ""
                " \n"
              ];
            };
            singleLineStr = {
              type = types.singleLineStr;
              accepts = [
                "a"
                "a\n"
                ""
              ];
              refuses = [ "a\nb" ];
            };
            strMatching = {
              type = types.strMatching "[a-z]+";
              accepts = [ "abc" ];
              refuses = [
                "abc1"
                ""
                1
              ];
            };
            path = {
              type = types.path;
              accepts = [
                "/etc"
                /etc
                package
              ];
              refuses = [
                "etc"
                ""
                1
              ];
            };
            package = {
              type = types.package;
              accepts = [ package ];
              refuses = [
                "/opt/hello"
                "hello"
                { outPath = "/opt/hello"; }
                3
              ];
            };
            enum = {
              type = types.enum [
                "a"
                1
              ];
              accepts = [
                "a"
                1
              ];
              refuses = [ "1" ];
            };
            addCheck = {
              type = types.addCheck types.str (text: text != "");
              accepts = [ "a" ];
              refuses = [
                ""
                1
              ];
            };
            coercedTo = {
              type = types.coercedTo types.int toString (types.strMatching "[0-9]+");
              accepts = [
                1
                "1"
              ];
              refuses = [
                (-1)
                "a"
                null
              ];
            };
            optionType = {
              type = types.optionType;
              accepts = [ types.str ];
              refuses = [ "str" ];
            };
            raw = {
              type = types.raw;
              accepts = [
                null
                (x: x)
              ];
              refuses = [ ];
            };
            nullOr = {
              type = types.nullOr types.int;
              accepts = [
                null
                1
              ];
              refuses = [ "1" ];
            };
            listOf = {
              type = types.listOf types.int;
              accepts = [
                [ ]
                [ "looked at later" ]
              ];
              refuses = [ { } ];
            };
            nonEmptyListOf = {
              type = types.nonEmptyListOf types.int;
              accepts = [ [ 1 ] ];
              refuses = [
                [ ]
                1
              ];
            };
            attrsOf = {
              type = types.attrsOf types.int;
              accepts = [
                { }
                { a = "looked at later"; }
              ];
              refuses = [ [ ] ];
            };
            submodule = {
              type = types.submodule server;
              accepts = [
                { }
                (_: { })
              ];
              refuses = [
                [ ]
                1
              ];
            };
            either = {
              type = types.either types.int (types.listOf types.int);
              accepts = [
                1
                [ ]
              ];
              refuses = [
                "1"
                null
              ];
            };
            oneOf = {
              type = value;
              accepts = [
                true
                1
                1.5
                "s"
                /etc
                { }
                [ ]
              ];
              refuses = [ null ];
            };
          }
      );
      expected = [ ];
    };
    "types describe themselves" = {
      expr = descriptions {
        inherit (types)
          bool
          float
          int
          lines
          nonEmptyStr
          number
          package
          path
          port
          raw
          singleLineStr
          str
          unspecified
          ;
        inherit (types.ints)
          positive
          unsigned
          u8
          u16
          u32
          ;
        between = types.ints.between 1 1024;
        numberBetween = types.numbers.between 0 1;
        strMatching = types.strMatching "[a-z]+";
        enum = types.enum [
          "a"
          "b"
          3
        ];
        single = types.enum [ "a" ];
        separatedString = types.separatedString ", ";
        nullOr = types.nullOr types.str;
        nullOrList = types.nullOr (types.listOf types.str);
        nullOrEnum = types.nullOr (
          types.enum [
            "a"
            "b"
          ]
        );
        nullOrEither = types.nullOr (types.either types.str types.int);
        nullOrSubmodule = types.nullOr (types.submodule server);
        nullOrBetween = types.nullOr (types.ints.between 1 3);
        nullOrMatching = types.nullOr (types.strMatching "[a-z]+");
        listOf = types.listOf types.str;
        listOfList = types.listOf (types.listOf types.str);
        listOfEnum = types.listOf (
          types.enum [
            "a"
            "b"
          ]
        );
        listOfNullOr = types.listOf (types.nullOr types.str);
        listOfEither = types.listOf (types.either types.str types.int);
        nonEmptyListOf = types.nonEmptyListOf (types.enum [ "a" ]);
        attrsOf = types.attrsOf types.str;
        attrsOfSubmodule = types.attrsOf (types.submodule server);
        attrsOfEither = types.attrsOf (types.either types.str types.ints.unsigned);
        attrsOfPackage = types.attrsOf types.package;
        lazyAttrsOf = types.lazyAttrsOf types.int;
        either = types.either types.str types.int;
        eitherList = types.either types.str (types.listOf types.str);
        oneOf = types.oneOf [
          (types.enum [
            "a"
            "b"
          ])
          (types.attrsOf types.str)
        ];
        three = types.oneOf [
          types.bool
          types.int
          types.str
        ];
        own = types.strMatching "[0-9]+(ms|s|m|h)" // {
          description = "duration";
        };
        nullOrOwn = types.nullOr (
          types.strMatching "[0-9]+(ms|s|m|h)"
          // {
            description = "duration: a whole number and its unit, ms, s, m or h";
          }
        );
        listOfOwn = types.listOf (
          types.strMatching "[a-z]+(/\\*)?"
          // {
            description = "namespace, or all below one";
          }
        );
        addCheck = types.addCheck types.str (text: text != "");
        coercedTo = types.coercedTo types.int toString types.str;
        coercedToList = types.coercedTo types.str (text: [ text ]) (types.listOf types.str);
        nullOrCoercedTo = types.nullOr (
          types.coercedTo (types.enum [
            "a"
            "b"
          ]) (mode: { inherit mode; }) (types.submodule server)
        );
        nullOrUnsigned = types.nullOr types.ints.unsigned;
        nullOrPort = types.nullOr types.port;
        eitherUnsigned = types.either types.ints.unsigned types.str;
        listOfSubmodule = types.listOf (types.submodule server);
        open = types.submodule { freeformType = toml; };
        openValue = types.attrsOf (types.submodule { freeformType = value; });
        value = value;
        attrsOfValue = types.attrsOf value;
        numberBetweenFloats = types.numbers.between 0.5 1.5;
        none = types.enum [ ];
        eitherOwn = types.either (types.enum [ "a" ]) (
          types.strMatching "[a-z]+" // { description = "word, or two of them"; }
        );
      };
      expected = {
        addCheck = "string";
        attrsOf = "attribute set of string";
        attrsOfEither = "attribute set of (string or (unsigned integer, meaning >=0))";
        attrsOfPackage = "attribute set of package";
        attrsOfSubmodule = "attribute set of (submodule)";
        attrsOfValue = "attribute set of (TOML value)";
        between = "integer between 1 and 1024 (both inclusive)";
        bool = "boolean";
        coercedTo = "string or signed integer convertible to it";
        coercedToList = "(list of string) or string convertible to it";
        either = "string or signed integer";
        eitherList = "string or list of string";
        eitherOwn = "value \"a\" (singular enum) or word, or two of them";
        eitherUnsigned = "unsigned integer, meaning >=0, or string";
        enum = "one of \"a\", \"b\", 3";
        float = "floating point number";
        int = "signed integer";
        lazyAttrsOf = "lazy attribute set of signed integer";
        lines = "strings concatenated with \"\\n\"";
        listOf = "list of string";
        listOfEither = "list of (string or signed integer)";
        listOfEnum = "list of (one of \"a\", \"b\")";
        listOfList = "list of list of string";
        listOfNullOr = "list of (null or string)";
        listOfOwn = "list of namespace, or all below one";
        listOfSubmodule = "list of (submodule)";
        nonEmptyListOf = "non-empty (list of value \"a\" (singular enum))";
        nonEmptyStr = "non-empty string";
        none = "impossible (empty enum)";
        nullOr = "null or string";
        nullOrBetween = "null or integer between 1 and 3 (both inclusive)";
        nullOrCoercedTo = "null or ((submodule) or (one of \"a\", \"b\") convertible to it)";
        nullOrEither = "null or string or signed integer";
        nullOrEnum = "null or one of \"a\", \"b\"";
        nullOrList = "null or (list of string)";
        nullOrMatching = "null or string matching the pattern [a-z]+";
        nullOrOwn = "null or duration: a whole number and its unit, ms, s, m or h";
        nullOrPort = "null or 16 bit unsigned integer; between 0 and 65535 (both inclusive)";
        nullOrSubmodule = "null or (submodule)";
        nullOrUnsigned = "null or (unsigned integer, meaning >=0)";
        number = "signed integer or floating point number";
        numberBetween = "integer or floating point number between 0 and 1 (both inclusive)";
        numberBetweenFloats = "integer or floating point number between 0.5 and 1.5 (both inclusive)";
        oneOf = "one of \"a\", \"b\" or attribute set of string";
        open = "open submodule of table";
        openValue = "attribute set of (open submodule of (TOML value))";
        own = "duration";
        package = "package";
        path = "absolute path";
        port = "16 bit unsigned integer; between 0 and 65535 (both inclusive)";
        positive = "positive integer, meaning >0";
        raw = "raw value";
        separatedString = "strings concatenated with \", \"";
        single = "value \"a\" (singular enum)";
        singleLineStr = "(optionally newline-terminated) single-line string";
        str = "string";
        strMatching = "string matching the pattern [a-z]+";
        three = "boolean or signed integer or string";
        u16 = "16 bit unsigned integer; between 0 and 65535 (both inclusive)";
        u32 = "32 bit unsigned integer; between 0 and 4294967295 (both inclusive)";
        u8 = "8 bit unsigned integer; between 0 and 255 (both inclusive)";
        unsigned = "unsigned integer, meaning >=0";
        unspecified = "unspecified value";
        value = "TOML value";
      };
    };
    "a type that nobody defines may be empty" = {
      expr = evaluate [
        {
          options.list = option (types.listOf types.int);
          options.set = option (types.attrsOf types.int);
          options.lazy = option (types.lazyAttrsOf types.int);
          options.null = option (types.nullOr types.int);
        }
      ];
      expected = {
        lazy = { };
        list = [ ];
        null = null;
        set = { };
      };
    };
    "what is coerced is merged as what it becomes" = {
      expr = {
        list = merge (types.coercedTo types.str (text: [ text ]) (types.listOf types.str)) [
          "a"
          [ "b" ]
        ];
        submodule =
          merge (types.coercedTo types.str (command: { inherit command; }) (types.submodule server))
            [
              "clock"
              { args = [ "--utc" ]; }
            ];
        null = merge (types.nullOr (types.coercedTo types.int toString types.str)) [ 1 ];
      };
      expected = {
        list = [
          "b"
          "a"
        ];
        null = "1";
        submodule = {
          args = [
            "--utc"
          ];
          command = "clock";
          env = { };
        };
      };
    };
    "a type with a further check is merged as before" = {
      expr = {
        lists = merge (types.addCheck (types.listOf types.int) (list: list != [ ])) [
          [ 1 ]
          [ 2 ]
        ];
        sets = merge (types.addCheck (types.attrsOf types.int) (set: !set ? b)) [
          { a = lib.mkDefault 1; }
          { a = 2; }
        ];
        options = lib.attrNames (
          (types.addCheck (types.submodule server) (_: true)).getSubOptions [ "it" ]
        );
      };
      expected = {
        lists = [
          2
          1
        ];
        options = [
          "_module"
          "args"
          "command"
          "env"
        ];
        sets = {
          a = 2;
        };
      };
    };
    "equal definitions of a scalar agree" = {
      expr = {
        string = merge types.str [
          "a"
          "a"
        ];
        int = merge types.int [
          1
          1
        ];
        bool = merge types.bool [
          true
          true
        ];
        null = merge (types.nullOr types.int) [
          null
          null
        ];
        enum = merge (types.enum [ "a" ]) [
          "a"
          "a"
        ];
        between = merge (types.ints.between 1 3) [
          2
          2
        ];
        path = merge types.path [
          "/a"
          "/a"
        ];
      };
      expected = {
        between = 2;
        bool = true;
        enum = "a";
        int = 1;
        null = null;
        path = "/a";
        string = "a";
      };
    };
    "definitions of sets are merged key by key" = {
      expr = {
        ints = merge (types.attrsOf types.int) [
          { a = 1; }
          {
            b = 2;
            a = lib.mkForce 3;
          }
        ];
        nested = merge (types.attrsOf (types.attrsOf types.int)) [
          { a.x = 1; }
          { a.y = 2; }
        ];
        lists = merge (types.attrsOf (types.listOf types.int)) [
          { a = [ 1 ]; }
          { a = lib.mkBefore [ 2 ]; }
        ];
      };
      expected = {
        ints = {
          a = 3;
          b = 2;
        };
        lists = {
          a = [
            2
            1
          ];
        };
        nested = {
          a = {
            x = 1;
            y = 2;
          };
        };
      };
    };
    "elements of a list may be conditional" = {
      expr = merge (types.listOf types.int) [
        [
          1
          (lib.mkIf false 2)
          (lib.mkIf true 3)
        ]
      ];
      expected = [
        1
        3
      ];
    };
    "of two types the first that fits all definitions merges them" = {
      expr = {
        list = merge (types.either types.int (types.listOf types.int)) [
          [ 1 ]
          [ 2 ]
        ];
        scalar = merge (types.either types.int types.str) [
          "a"
          "a"
        ];
        set =
          merge
            (types.oneOf [
              (types.enum [ "a" ])
              (types.attrsOf types.str)
            ])
            [
              { x = "1"; }
              { y = "2"; }
            ];
      };
      expected = {
        list = [
          2
          1
        ];
        scalar = "a";
        set = {
          x = "1";
          y = "2";
        };
      };
    };
    "unspecified values are merged by what they are" = {
      expr = {
        sets = merge types.unspecified [
          { a = 1; }
          { b = 2; }
        ];
        lists = merge types.unspecified [
          [ 1 ]
          [ 2 ]
        ];
        bools = merge types.unspecified [
          true
          false
        ];
      };
      expected = {
        bools = true;
        lists = [
          2
          1
        ];
        sets = {
          a = 1;
          b = 2;
        };
      };
    };
    "a value of its own type is merged by its own function" = {
      expr =
        merge
          (lib.mkOptionType {
            name = "sum";
            check = builtins.isInt;
            merge = _: definitions: lib.foldl' (sum: definition: sum + definition.value) 0 definitions;
          })
          [
            1
            2
            3
          ];
      expected = 6;
    };

    # ------------------------------------------------------ making of options
    "mkEnableOption is off" = {
      expr = builtins.removeAttrs (lib.mkEnableOption "it") [ "type" ];
      expected = {
        _type = "option";
        default = false;
        description = "Whether to enable it.";
        example = true;
      };
    };
    "mkPackageOption takes the package of its name" = {
      expr = builtins.removeAttrs (lib.mkPackageOption byName "package" { }) [ "type" ];
      expected = {
        _type = "option";
        default = "/opt/hello";
        defaultText = {
          _type = "literalExpression";
          text = "pkgs.package";
        };
        description = "The package package to use.";
      };
    };
    "mkPackageOption takes a path, an example, a text and null" = {
      expr = map (option: builtins.removeAttrs option [ "type" ]) [
        (lib.mkPackageOption byName [ "nested" "package" ] { extraDescription = "Or another."; })
        (lib.mkPackageOption byName "other" {
          default = [
            "nested"
            "package"
          ];
          example = "pkgs.goodbye";
        })
        (lib.mkPackageOption byName "other" {
          nullable = true;
          default = null;
        })
      ];
      expected = [
        {
          _type = "option";
          default = "/opt/hello";
          defaultText = {
            _type = "literalExpression";
            text = "pkgs.nested.package";
          };
          description = "The package package to use. Or another.";
        }
        {
          _type = "option";
          default = "/opt/hello";
          defaultText = {
            _type = "literalExpression";
            text = "pkgs.nested.package";
          };
          description = "The other package to use.";
          example = {
            _type = "literalExpression";
            text = "pkgs.goodbye";
          };
        }
        {
          _type = "option";
          default = null;
          description = "The other package to use.";
        }
      ];
    };
    "texts of a documentation say what they are" = {
      expr = [
        (lib.literalExpression "pkgs.hello")
        (lib.literalMD "the *port*")
      ];
      expected = [
        {
          _type = "literalExpression";
          text = "pkgs.hello";
        }
        {
          _type = "literalMD";
          text = "the *port*";
        }
      ];
    };

    "options are listed for documentation, with what is below them" = {
      expr =
        map
          (
            entry:
            builtins.removeAttrs entry [
              "declarations"
              "loc"
            ]
          )
          (
            lib.filter (entry: lib.hasPrefix "a." entry.name && !lib.hasInfix "_module" entry.name) (
              lib.optionAttrSetToDocList
                (lib.evalModules {
                  modules = [
                    {
                      options.a = {
                        enable = lib.mkEnableOption "it";
                        package = lib.mkPackageOption byName "package" { };
                        servers = mkOption {
                          type = types.attrsOf (types.submodule server);
                          default = { };
                          example = lib.literalExpression "{ clock.command = lib.getExe pkgs.clock; }";
                          description = "Servers.";
                        };
                        one = mkOption {
                          type = types.nullOr (types.submodule named);
                          default = null;
                          description = "One.";
                        };
                        several = mkOption {
                          type = types.listOf (types.submodule { options.b = optional types.int 1; });
                          example = [
                            { b = 2; }
                          ];
                        };
                        value = mkOption {
                          type = value;
                          default = throw "not needed";
                          defaultText = lib.literalExpression "{ }";
                        };
                        shown = mkOption {
                          type = types.unspecified;
                          default = {
                            text = "a \"b\" \\ \${c} d";
                            lines = "a\n''b \${c}\nd\n";
                            last = "a\nb";
                            list = [
                              1
                              1.5
                              true
                              null
                              [ ]
                              { }
                            ];
                            "a b"."c.d" = /etc;
                          };
                          example = lib.literalMD "whatever";
                        };
                        hidden = mkOption {
                          type = types.submodule server;
                          visible = false;
                        };
                        shallow = mkOption {
                          type = types.submodule server;
                          visible = "shallow";
                        };
                        inner = mkOption {
                          internal = true;
                          readOnly = true;
                        };
                        checked = mkOption {
                          type = types.addCheck (types.submodule server) (_: true);
                          defaultText = lib.literalMD "what `a.b` says";
                        };
                      };
                    }
                  ];
                }).options
            )
          );
      expected = [
        {
          default = {
            _type = "literalMD";
            text = "what `a.b` says";
          };
          description = null;
          internal = false;
          name = "a.checked";
          readOnly = false;
          type = "submodule";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "[ ]";
          };
          description = null;
          internal = false;
          name = "a.checked.args";
          readOnly = false;
          type = "list of string";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "null";
          };
          description = null;
          internal = false;
          name = "a.checked.command";
          readOnly = false;
          type = "null or string";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "{ }";
          };
          description = null;
          internal = false;
          name = "a.checked.env";
          readOnly = false;
          type = "attribute set of string";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "false";
          };
          description = "Whether to enable it.";
          example = {
            _type = "literalExpression";
            text = "true";
          };
          internal = false;
          name = "a.enable";
          readOnly = false;
          type = "boolean";
          visible = true;
        }
        {
          description = null;
          internal = false;
          name = "a.hidden";
          readOnly = false;
          type = "submodule";
          visible = false;
        }
        {
          description = null;
          internal = true;
          name = "a.inner";
          readOnly = true;
          type = "unspecified value";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "null";
          };
          description = "One.";
          internal = false;
          name = "a.one";
          readOnly = false;
          type = "null or (submodule)";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "\"‹name›\"";
          };
          description = null;
          internal = false;
          name = "a.one.name";
          readOnly = false;
          type = "string";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "\"/run/‹name›.sock\"";
          };
          description = null;
          internal = false;
          name = "a.one.socket";
          readOnly = false;
          type = "string";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "pkgs.package";
          };
          description = "The package package to use.";
          internal = false;
          name = "a.package";
          readOnly = false;
          type = "package";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "{ }";
          };
          description = "Servers.";
          example = {
            _type = "literalExpression";
            text = "{ clock.command = lib.getExe pkgs.clock; }";
          };
          internal = false;
          name = "a.servers";
          readOnly = false;
          type = "attribute set of (submodule)";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "[ ]";
          };
          description = null;
          internal = false;
          name = "a.servers.<name>.args";
          readOnly = false;
          type = "list of string";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "null";
          };
          description = null;
          internal = false;
          name = "a.servers.<name>.command";
          readOnly = false;
          type = "null or string";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "{ }";
          };
          description = null;
          internal = false;
          name = "a.servers.<name>.env";
          readOnly = false;
          type = "attribute set of string";
          visible = true;
        }
        {
          description = null;
          example = {
            _type = "literalExpression";
            text = ''
              [
                {
                  b = 2;
                }
              ]'';
          };
          internal = false;
          name = "a.several";
          readOnly = false;
          type = "list of (submodule)";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "1";
          };
          description = null;
          internal = false;
          name = "a.several.*.b";
          readOnly = false;
          type = "signed integer";
          visible = true;
        }
        {
          description = null;
          internal = false;
          name = "a.shallow";
          readOnly = false;
          type = "submodule";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = ''
              {
                "a b" = {
                  "c.d" = /etc;
                };
                last = '''
                  a
                  b''';
                lines = '''
                  a
                  ''''b '''''${c}
                  d
                ''';
                list = [
                  1
                  1.5
                  true
                  null
                  [ ]
                  { }
                ];
                text = "a \"b\" \\ \''${c} d";
              }'';
          };
          description = null;
          example = {
            _type = "literalMD";
            text = "whatever";
          };
          internal = false;
          name = "a.shown";
          readOnly = false;
          type = "unspecified value";
          visible = true;
        }
        {
          default = {
            _type = "literalExpression";
            text = "{ }";
          };
          description = null;
          internal = false;
          name = "a.value";
          readOnly = false;
          type = "TOML value";
          visible = true;
        }
      ];
    };

    # ------------------------------------------------------------- functions
    "functions of strings" = {
      expr = [
        (lib.hasPrefix "ab" "abc")
        (lib.hasPrefix "abcd" "abc")
        (lib.hasSuffix "bc" "abc")
        (lib.hasSuffix "abcd" "abc")
        (lib.hasInfix "b" "abc")
        (lib.hasInfix ".*" "abc")
        (lib.removePrefix "ab" "abc")
        (lib.removePrefix "x" "abc")
        (lib.removeSuffix "bc" "abc")
        (lib.removeSuffix "x" "abc")
        (lib.toUpper "aBc-ö1")
        (lib.optionalString true "a")
        (lib.optionalString false (throw "not needed"))
        (lib.concatStringsSep ", " [
          "a"
          "b"
        ])
        (lib.concatMapStringsSep ", " toString [
          1
          2
        ])
      ];
      expected = [
        true
        false
        true
        false
        true
        false
        "c"
        "abc"
        "a"
        "abc"
        "ABC-ö1"
        "a"
        ""
        "a, b"
        "1, 2"
      ];
    };
    "more functions of strings" = {
      expr = [
        (lib.toLower "aBc-Ö1")
        (lib.splitString ":" "a::b:")
        (lib.splitString "." "a.b")
        (lib.concatStrings [
          "a"
          "b"
        ])
        (lib.concatMapStrings toString [
          1
          2
        ])
        (lib.replaceStrings [ "a" "" ] [ "b" "-" ] "xa")
        (map lib.boolToString [
          true
          false
        ])
        (map lib.toInt [
          "12011"
          " -1 "
          "0"
        ])
        (map lib.escapeShellArg [
          "plain-1_2.3:4/5@6%7+8,9"
          "a b"
          "it's"
          "$HOME `x` \\ \"y\""
          ""
          "a\nb"
          "*"
          "=x"
        ])
        (lib.escapeShellArgs [
          "a b"
          1
          "c"
        ])
      ];
      expected = [
        "abc-Ö1"
        [
          "a"
          ""
          "b"
          ""
        ]
        [
          "a"
          "b"
        ]
        "ab"
        "12"
        "-xb-"
        [
          "true"
          "false"
        ]
        [
          12011
          (-1)
          0
        ]
        [
          "plain-1_2.3:4/5@6%7+8,9"
          "'a b'"
          "'it'\\''s'"
          "'$HOME `x` \\ \"y\"'"
          "''"
          "'a\nb'"
          "'*'"
          "'=x'"
        ]
        "'a b' 1 c"
      ];
    };
    "functions of lists" = {
      expr = [
        (lib.optional true 1)
        (lib.optional false (throw "not needed"))
        (lib.optionals true [ 1 ])
        (lib.optionals false (throw "not needed"))
        (lib.any (x: x > 1) [
          1
          2
        ])
        (lib.all (x: x > 1) [
          1
          2
        ])
        (lib.elem 1 [ 2 ])
        (lib.filter (x: x > 1) [
          1
          2
        ])
        (lib.head [
          1
          2
        ])
        (lib.concatLists [
          [ 1 ]
          [ 2 ]
        ])
        (lib.concatMap (x: [
          x
          x
        ]) [ 1 ])
        (lib.foldl' (a: b: a - b) 10 [
          1
          2
        ])
      ];
      expected = [
        [
          1
        ]
        [ ]
        [
          1
        ]
        [ ]
        true
        false
        false
        [
          2
        ]
        1
        [
          1
          2
        ]
        [
          1
          1
        ]
        7
      ];
    };
    "more functions of lists" = {
      expr = [
        (lib.toList 1)
        (lib.toList [ 1 ])
        (lib.toList { })
        (lib.unique [
          2
          1
          2
        ])
        (lib.last [
          1
          2
        ])
        (lib.id 1)
        (lib.groupBy toString [
          1
          2
          1
        ])
      ];
      expected = [
        [
          1
        ]
        [
          1
        ]
        [
          { }
        ]
        [
          2
          1
        ]
        2
        1
        {
          "1" = [
            1
            1
          ];
          "2" = [
            2
          ];
        }
      ];
    };
    "functions of sets" = {
      expr = [
        (lib.mapAttrs (name: value: "${name}${value}") { a = "1"; })
        (lib.mapAttrs' (name: lib.nameValuePair "${name}x") { a = 1; })
        (lib.concatMapAttrs
          (name: value: {
            ${name} = value;
            "${name}${name}" = value;
          })
          {
            a = 1;
            aa = 2;
          }
        )
        (lib.mapAttrsToList (name: value: "${name}${value}") {
          b = "2";
          a = "1";
        })
        (lib.filterAttrs (_: value: value > 1) {
          a = 1;
          b = 2;
        })
        (lib.concatMapAttrs
          (name: value: {
            ${name} = value;
            "${name}${name}" = value + 1;
          })
          {
            a = 1;
            aa = 5;
          }
        )
        (lib.genAttrs [ "a" ] (name: "${name}${name}"))
        (lib.optionalAttrs true { a = 1; })
        (lib.optionalAttrs false (throw "not needed"))
        (lib.recursiveUpdate
          {
            a.b = 1;
            a.c = 2;
          }
          {
            a.b = 3;
            d = [ ];
          }
        )
        (lib.attrNames {
          b = 1;
          a = 2;
        })
        (lib.attrValues {
          b = 1;
          a = 2;
        })
      ];
      expected = [
        {
          a = "a1";
        }
        {
          ax = 1;
        }
        {
          a = 1;
          aa = 2;
          aaaa = 2;
        }
        [
          "a1"
          "b2"
        ]
        {
          b = 2;
        }
        {
          a = 1;
          aa = 5;
          aaaa = 6;
        }
        {
          a = "aa";
        }
        {
          a = 1;
        }
        { }
        {
          a = {
            b = 3;
            c = 2;
          };
          d = [ ];
        }
        [
          "a"
          "b"
        ]
        [
          2
          1
        ]
      ];
    };
    "getExe is the main program of a package" = {
      expr = [
        (lib.getExe package)
        (lib.getExe (
          package
          // {
            bin = package // {
              outPath = "/opt/hello-bin";
            };
          }
        ))
      ];
      expected = [
        "/opt/hello/bin/hello"
        "/opt/hello-bin/bin/hello"
      ];
    };
    "getBin is the output of a package that has its programs" = {
      expr = map (found: found.outPath) [
        (lib.getBin package)
        (lib.getBin (
          package
          // {
            bin = package // {
              outPath = "/opt/hello-bin";
            };
          }
        ))
        (lib.getBin (
          package
          // {
            out = package // {
              outPath = "/opt/hello-out";
            };
          }
        ))
      ];
      expected = [
        "/opt/hello"
        "/opt/hello-bin"
        "/opt/hello-out"
      ];
    };
    "values of one option agree, or are equal" = {
      expr = lib.mergeEqualOption [ "it" ] (
        map
          (value: {
            inherit value;
            file = "here";
          })
          [
            1
            1
          ]
      );
      expected = 1;
    };
    "facts about packages" = {
      expr = [
        lib.licenses.mit.spdxId
        (lib.elem "x86_64-linux" lib.platforms.linux)
        (lib.elem "aarch64-linux" lib.platforms.linux)
        (lib.importTOML ../../Cargo.toml).package.name
        (lib.hasPrefix "# What nixpkgs" (lib.readFile ./lib-cases.nix))
      ];
      expected = [
        "MIT"
        true
        true
        "metamcp"
        true
      ];
    };
    "getExe' is a program of a package" = {
      expr = [
        (lib.getExe' package "hello-again")
        (lib.getExe' (
          package
          // {
            bin = package // {
              outPath = "/opt/hello-bin";
            };
          }
        ) "hello-again")
      ];
      expected = [
        "/opt/hello/bin/hello-again"
        "/opt/hello-bin/bin/hello-again"
      ];
    };
    "showOption quotes what is no identifier" = {
      expr = map lib.showOption [
        [
          "services"
          "metamcp"
        ]
        [
          "environment"
          "etc"
          "metamcp/metamcp.toml"
          "source"
        ]
        [
          "servers"
          "<name>"
          "args"
          "*"
        ]
        [
          "servers"
          "0"
          "a-b"
          "a'"
        ]
      ];
      expected = [
        "services.metamcp"
        "environment.etc.\"metamcp/metamcp.toml\".source"
        "servers.<name>.args.*"
        "servers.\"0\".a-b.a'"
      ];
    };
  };

  # { expr, message }: the evaluation fails, and these words are in what it says.
  errors = {
    "an option that is not declared" = {
      expr = evaluate [
        { options.a.b = optional types.int 1; }
        { a.c = 1; }
      ];
      message = "The option `a.c' does not exist. Definition values:";
    };
    "an option of a submodule that is not declared" = {
      expr = merge (types.attrsOf (types.submodule server)) [ { clock.comand = "clock"; } ];
      message = "The option `it.clock.comand' does not exist. Definition values:";
    };
    "a value of another type" = {
      expr = merge types.int [ "1" ];
      message = "A definition for option `it' is not of type `signed integer'";
    };
    "a value that an enum does not have" = {
      expr = merge (types.enum [
        "a"
        "b"
      ]) [ "c" ];
      message = "A definition for option `it' is not of type `one of \"a\", \"b\"'";
    };
    "a string that does not match" = {
      expr = merge (types.strMatching "[a-z]+") [ "A" ];
      message = "A definition for option `it' is not of type `string matching the pattern [a-z]+'";
    };
    "an integer that is out of bounds" = {
      expr = merge (types.ints.between 1 3) [ 4 ];
      message = "A definition for option `it' is not of type `integer between 1 and 3 (both inclusive)'";
    };
    "a type with a description of its own" = {
      expr = merge (types.strMatching "[0-9]+s" // { description = "duration"; }) [ "1" ];
      message = "A definition for option `it' is not of type `duration'";
    };
    "an element of another type" = {
      expr = merge (types.listOf types.int) [
        [ 1 ]
        [
          2
          "3"
        ]
      ];
      message = "A definition for option `it.\"[definition 1-entry 2]\"' is not of type `signed integer'";
    };
    "a value of a set of another type" = {
      expr = merge (types.attrsOf types.int) [ { a = "1"; } ];
      message = "A definition for option `it.a' is not of type `signed integer'";
    };
    "a value of a submodule of another type" = {
      expr = merge (types.attrsOf (types.submodule server)) [ { clock.args = "--utc"; } ];
      message = "A definition for option `it.clock.args' is not of type `list of string'";
    };
    "null where there is no null" = {
      expr = merge (types.attrsOf value) [ { a = null; } ];
      message = "A definition for option `it.a' is not of type `TOML value'";
    };
    "an empty list where one is wanted" = {
      expr = merge (types.nonEmptyListOf types.int) [ [ ] ];
      message = "A definition for option `it' is not of type `non-empty (list of signed integer)'";
    };
    "a value that no type of several has" = {
      expr = merge (types.either types.int types.str) [ [ ] ];
      message = "A definition for option `it' is not of type `signed integer or string'";
    };
    "a value of a free form of another type" = {
      expr = merge (types.submodule { freeformType = types.attrsOf types.int; }) [ { a = "1"; } ];
      message = "A definition for option `it.a' is not of type `signed integer'";
    };
    "an option without a value" = {
      expr = evaluate [ { options.a = option types.int; } ];
      message = "The option `a' was accessed but has no value defined. Try setting the option.";
    };
    "an option of a submodule without a value" = {
      expr = merge (types.attrsOf (types.submodule { options.url = option types.str; })) [
        { cluster = { }; }
      ];
      message = "The option `it.cluster.url' was accessed but has no value defined. Try setting the option.";
    };
    "definitions that contradict one another" = {
      expr = merge types.str [
        "a"
        "b"
      ];
      message = "The option `it' has conflicting definition values:";
    };
    "a value that a further check refuses" = {
      expr = merge (types.addCheck types.str (text: text != "") // { description = "something"; }) [ "" ];
      message = "A definition for option `it' is not of type `something'";
    };
    "a value that cannot be coerced" = {
      expr = merge (types.coercedTo types.int toString types.str) [ [ ] ];
      message = "A definition for option `it' is not of type `string or signed integer convertible to it'";
    };
    "a text that is no number" = {
      expr = lib.toInt "1a";
      message = "toInt: Could not convert \"1a\" to int.";
    };
    "values of one option that are not equal" = {
      expr = lib.mergeEqualOption [ "it" ] (
        map
          (value: {
            inherit value;
            file = "here";
          })
          [
            1
            2
          ]
      );
      message = "The option `it' has conflicting definition values:";
    };
    "a null and a value" = {
      expr = merge (types.nullOr types.int) [
        null
        1
      ];
      message = "is defined both null and not null, in `<unknown-file>' and `<unknown-file>'.";
    };
    "a read-only option that is set twice" = {
      expr = evaluate [
        {
          options.a = mkOption {
            type = types.int;
            readOnly = true;
          };
        }
        { a = 1; }
        { a = 1; }
      ];
      message = "The option `a' is read-only, but it's set multiple times. Definition values:";
    };
    "two packages where one is wanted" = {
      expr = merge types.package [
        package
        (package // { outPath = "/opt/other"; })
      ];
      message = "The option `it' is defined multiple times while it's expected to be unique";
    };
    "a module with options and stray configuration" = {
      expr = evaluate [
        {
          options.a = optional types.int 1;
          a = 2;
        }
      ];
      message = "has an unsupported attribute `a'. This is caused by introducing a top-level `config' or `options' attribute.";
    };
    "a scalar where there are options below" = {
      expr = evaluate [
        { options.a.b = optional types.int 1; }
        { a = 1; }
      ];
      message = "you're trying to define a value of type `int'";
    };
    "an option that is declared twice" = {
      expr = evaluate [
        { options.a = option types.int; }
        { options.a = option types.str; }
        { a = 1; }
      ];
      message = "The option `a' in `<unknown-file>' is already declared in `<unknown-file>'.";
    };
    "a package that does not exist" = {
      expr = (evaluate [ { options.a = lib.mkPackageOption byName "missing" { }; } ]).a;
      message = "missing cannot be found in pkgs";
    };
    "a module argument that does not exist" = {
      expr = evaluate [ ({ missing, ... }: { options.a = optional types.int missing; }) ];
      message = "attribute 'missing' missing";
    };
    "a condition that is none" = {
      expr = evaluate [
        { options.a = optional types.int 1; }
        { a = lib.mkIf "yes" 2; }
      ];
      message = "called with a non-Boolean condition";
    };
  };
}
