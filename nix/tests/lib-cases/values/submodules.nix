# Cases for nixpkgs' lib: submodules and freeform types.
{
  evaluate,
  lib,
  merge,
  named,
  option,
  optional,
  server,
  toml,
  value,
  ...
}:
let
  inherit (lib) types;
in
{
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
  "a submodule without a definition has its defaults" = {
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
  "an optional submodule may be null" = {
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
  "a freeform type accepts undeclared options" = {
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
  "mkIf and mkDefault apply to freeform values" = {
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
  "a freeform value contains only its definitions" = {
    expr = merge (types.submodule { freeformType = toml; }) [ { } ];
    expected = { };
  };
}
