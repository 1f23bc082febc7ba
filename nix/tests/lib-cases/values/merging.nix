# Cases for nixpkgs' lib: the merging of definitions.
{
  evaluate,
  lib,
  merge,
  option,
  server,
  ...
}:
let
  inherit (lib) types;
in
{
  "some types have an empty value without a definition" = {
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
  "a coerced value is merged as a value of the final type" = {
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
  "an additional check does not change the merging" = {
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
  "the first type that accepts all definitions merges them" = {
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
  "unspecified values are merged by their kind" = {
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
  "a custom type merges with its own function" = {
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
}
