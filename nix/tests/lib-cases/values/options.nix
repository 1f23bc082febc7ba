# Cases for nixpkgs' lib: options.
{
  byName,
  lib,
  ...
}:
{
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
  "several values of one option must be equal" = {
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
  "showOption quotes names that are not identifiers" = {
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
}
