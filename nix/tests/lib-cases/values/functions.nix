# Cases for nixpkgs' lib: functions for strings, lists and sets.
{ lib, ... }:
{
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
}
