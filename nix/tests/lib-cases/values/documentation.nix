# Cases for nixpkgs' lib: the documentation of options.
{
  byName,
  lib,
  named,
  optional,
  server,
  value,
  ...
}:
let
  inherit (lib) mkOption types;
in
{
  "texts of the documentation have a type" = {
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

  "options are listed for documentation, including those of submodules" = {
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
}
