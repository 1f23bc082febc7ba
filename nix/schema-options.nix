# The options for the keys of metamcp.toml, from its JSON Schema, nix/schema.json. The
# module reads this copy, because an evaluation cannot run `metamcp schema`.
{
  format,
  lib,
}:
let
  inherit (lib) mkOption types;

  # A text that the schema restricts. builtins.match compares the whole text, has no
  # groups without a capture, and no escape of a closing bracket.
  textType =
    schema:
    let
      pattern = lib.replaceStrings [ "(?:" "\\]" ] [ "(" "]" ] (lib.removePrefix "^" schema.pattern);
      isWhole = lib.hasSuffix "$" pattern;
      matches = builtins.match (if isWhole then lib.removeSuffix "$" pattern else "${pattern}.*");
      type = if schema ? minLength then types.nonEmptyStr else types.str;
      isAccepted =
        text:
        (schema ? pattern -> matches text != null)
        && (schema ? maxLength -> builtins.stringLength text <= schema.maxLength);
    in
    if schema ? pattern || schema ? maxLength then
      types.addCheck type isAccepted
      // {
        description =
          schema.title or type.description
          + lib.optionalString (schema ? maxLength) ", at most ${toString schema.maxLength} bytes";
        descriptionClass = "noun";
      }
    else
      type;

  listType =
    schema:
    let
      element = typeOf schema.items { };
      least = schema.minItems or 0;
      size = "${if least == 0 then "at most" else "${toString least} to"} ${toString schema.maxItems}";
    in
    if schema ? maxItems then
      types.addCheck (types.listOf element) (
        list: builtins.length list >= least && builtins.length list <= schema.maxItems
      )
      // {
        description = "list of ${size} (${element.description})";
      }
    else if least == 1 then
      types.nonEmptyListOf element
    else
      types.listOf element;

  tableType =
    schema: details:
    if schema ? properties then
      types.submodule { options = optionsOf schema details; }
    else if schema.additionalProperties ? properties then
      types.attrsOf (
        types.submodule {
          freeformType = format.type;
          options = optionsOf schema.additionalProperties details;
        }
      )
    else
      types.attrsOf (typeOf schema.additionalProperties { });

  # A word, or a table. If the table has a required key, the word is this key.
  wordOrTable =
    word: table: details:
    let
      tables = tableType table details;
    in
    if table ? required then
      types.coercedTo (typeOf word { }) (word: lib.genAttrs table.required (_: word)) tables
    else
      types.either (typeOf word { }) tables // { inherit (tables) getSubOptions; };

  typeOf =
    schema: details:
    if schema ? anyOf then
      wordOrTable (lib.head schema.anyOf) (lib.last schema.anyOf) details
    else if schema ? const then
      types.enum [ schema.const ]
    else
      {
        array = listType schema;
        boolean = types.bool;
        integer = types.ints.between schema.minimum schema.maximum;
        number = types.numbers.between schema.minimum schema.maximum;
        object = tableType schema details;
        string = textType schema;
        words = types.enum (map (word: word.const) schema.oneOf);
      }
      .${schema.type or "words"};

  # The meaning of a key, and of its words.
  describe =
    schema: default:
    let
      forms = schema.anyOf or [ (schema.items or schema) ];
      words = map (word: "- `${word.const}`: ${word.description}") ((lib.head forms).oneOf or [ ]);
      text = lib.concatStringsSep "\n" (
        [ schema.description ] ++ lib.optionals (words != [ ]) ([ "" ] ++ words)
      );
    in
    # TOML has no null.
    if default == null then
      lib.replaceStrings [ "Without it," "without it," ] [ "If `null`," "if `null`," ] text
    else
      text;

  # The option for a key. `details` are further attributes of the option, or others in
  # place of those of the schema; `details.options` are the details of the keys below.
  optionFor =
    isRequired: schema: details:
    let
      empty = {
        array = [ ];
        object = if schema ? required then null else { };
      };
      default = schema.default or (empty.${schema.type or "words"} or null);
      type = typeOf schema (details.options or { });
      isNullable = details.isNullable or (!isRequired && (default == null || own.default == null));
      own = {
        inherit default;
        description = describe schema own.default;
        type = if isNullable then types.nullOr type else type;
      }
      // lib.optionalAttrs (schema.type or null == "boolean") { example = !default; }
      // details;
    in
    mkOption (
      removeAttrs own (
        [
          "isNullable"
          "options"
        ]
        ++ lib.optional isRequired "default"
      )
    );

  # The options for the keys of a table. A table without required keys is not an option, but
  # has one for each of its keys.
  optionsOf =
    table: details:
    assert removeAttrs details (lib.attrNames table.properties) == { };
    lib.mapAttrs (
      name: schema:
      (
        if schema ? properties && !(schema ? required) then
          optionsOf
        else
          optionFor (lib.elem name (table.required or [ ]))
      )
        schema
        (details.${name} or { })
    ) table.properties;
in
{
  schema = builtins.fromJSON (builtins.readFile ./schema.json);
  inherit optionsOf;
}
