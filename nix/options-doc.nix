# The reference of all options, in Markdown: nix/options.md.
#
#   import ./options-doc.nix { inherit lib; } { nixos = OPTIONS; home = OPTIONS; }
#
# OPTIONS is what an evaluation has as `options`, of NixOS or of Home Manager.
{ lib }:
{ home, nixos }:
let
  prefix = "services.metamcp";

  # What each section is about, by what comes after services.metamcp.
  about = {
    "" = "The service itself.";
    servers = "The MCP servers, by name.";
    "servers.<name>.sandbox" = "What the unit of a server may do.";
    upstream = "One endpoint that clients see as it is.";
    claudeCode = "What Claude Code is told.";
    settings = "The configuration file.";
    "settings.breaker" = "When a server that fails is left alone.";
    "settings.catalog" = "What is remembered of servers that are not connected.";
    "settings.health" = "How servers are watched.";
    "settings.listen" = "Where clients and operators reach the service.";
    "settings.pool" = "How many connections to servers there may be, and for how long.";
    "settings.provision" = "Which servers may be added on request.";
    "settings.provision.servers" = "The servers that may be added on request, by name.";
    "settings.search" = "How tools are searched for.";
    "settings.servers" = "The servers as the configuration file has them, for exact control.";
    "settings.service" = "How the service as a whole behaves.";
    "settings.tasks" = "What is kept of calls that go on by themselves.";
    "settings.tools" = "What the view `meta` shows of itself.";
  };
  # The others follow in the order of the alphabet.
  first = [
    ""
    "servers"
    "servers.<name>.sandbox"
    "upstream"
    "claudeCode"
  ];

  # In which of them an option is.
  sectionOf =
    { loc, ... }:
    let
      # After services.metamcp, and with two more for the end of a short one.
      at = lib.tail (lib.tail loc) ++ [
        ""
        ""
      ];
      part = lib.elemAt at;
    in
    if part 0 == "servers" then
      if part 2 == "sandbox" then "servers.<name>.sandbox" else "servers"
    else if part 0 == "settings" then
      if part 1 == "" then
        "settings"
      else if part 1 == "provision" && part 2 == "servers" then
        "settings.provision.servers"
      else
        "settings.${part 1}"
    else if about ? ${part 0} then
      part 0
    else
      "";

  # What the module system itself declares in each submodule is left out.
  list =
    options:
    lib.filter (option: option.visible && !option.internal && !lib.elem "_module" option.loc) (
      lib.optionAttrSetToDocList options.services.metamcp
    );

  # ------------------------------------------------------------------ sections
  all = list nixos;
  byName = lib.listToAttrs (map (option: lib.nameValuePair option.name option) all);
  bySection = lib.groupBy sectionOf all;
  sections = lib.filter (key: bySection ? ${key}) (
    first ++ lib.filter (key: !lib.elem key first) (lib.attrNames about)
  );

  heading = key: "${prefix}${lib.optionalString (key != "") ".${key}"}";
  # As Markdown on the web makes it of a heading.
  anchor =
    text:
    lib.toLower (lib.concatStrings (lib.filter lib.isString (builtins.split "[^A-Za-z0-9_-]+" text)));

  # An option that is called as its section stands at the head of it.
  section =
    key:
    let
      name = heading key;
      isHead = option: option.name == name;
      heads = lib.filter isHead bySection.${key};
      others = lib.filter (option: !isHead option && !isRepeated key option) bySection.${key};
    in
    lib.concatStringsSep "\n\n" (
      [ "## `${name}`" ]
      ++ (if heads == [ ] then [ about.${key} ] else map body heads)
      ++ lib.optional (repeated key != [ ]) (
        "What these have of [a server](#${anchor (heading "servers")}): ${
          lib.concatMapStringsSep ", " (option: "`${lib.removePrefix "${name}.<name>." option.name}`") (
            repeated key
          )
        }."
      )
      ++ map (option: "### `${option.name}`\n\n${body option}") others
    );

  # The tables of servers in the file have most of what a server has above.
  repeated = key: lib.filter (isRepeated key) bySection.${key};
  isRepeated =
    key: option:
    let
      twin =
        byName."${prefix}.servers.<name>.${lib.removePrefix "${heading key}.<name>." option.name}" or null;
    in
    lib.elem key [
      "settings.servers"
      "settings.provision.servers"
    ]
    && twin != null
    && said twin == said option;

  # -------------------------------------------------------------- Home Manager
  ofHome = list home;
  homeByName = lib.listToAttrs (map (option: lib.nameValuePair option.name option) ofHome);
  isMissing = option: !(homeByName ? ${option.name});
  # Of an option with others below it, the one at the top.
  onlyNixos = lib.filter (
    option:
    isMissing option
    && !lib.any (other: isMissing other && lib.hasPrefix "${other.name}." option.name) all
  ) all;
  otherwise = lib.filter (
    option: !(byName ? ${option.name}) || said option != said byName.${option.name}
  ) ofHome;
  homeSection = lib.concatStringsSep "\n\n" (
    [
      "## Home Manager"
      "The module for Home Manager, `nix/home-module.nix`, has the options above but for these: ${
        lib.concatMapStringsSep ", " (option: "`${lib.removePrefix "${prefix}." option.name}`") onlyNixos
      }. These are others there:"
    ]
    ++ map (option: "### `${option.name}` (Home Manager)\n\n${body option}") otherwise
  );

  # What documentation says of an option.
  said = option: {
    inherit (option) description type;
    default = option.default or null;
    example = option.example or null;
  };

  # ------------------------------------------------------------------- entries
  body =
    option:
    lib.concatStringsSep "\n" (
      [
        (plain option.description)
        ""
        "- Type: ${typeName option.type}"
      ]
      ++ lib.optional (option ? default) (value "Default" option.default)
      ++ lib.optional (option ? example) (value "Example" option.example)
    );

  # Shorter where the options below say the rest, and a pattern as it is.
  typeName =
    type:
    let
      short =
        lib.replaceStrings
          [ "(open submodule of (TOML value))" "open submodule of (TOML value)" "(submodule)" ]
          [
            "submodule"
            "submodule"
            "submodule"
          ]
          type;
      pattern = builtins.match "(.*) matching the pattern (.*)" short;
    in
    if pattern == null then
      lib.replaceStrings [ "*" "<" ] [ "\\*" "\\<" ] short
    else
      "${lib.head pattern} matching `${lib.elemAt pattern 1}`";

  # Without the roles of NixOS' Markdown: {option}`x` is `x`.
  plain =
    text:
    lib.removeSuffix "\n" (
      lib.concatMapStrings (part: if lib.isList part then "`" else part) (
        builtins.split "[{](command|env|file|manpage|option|var)[}]`" text
      )
    );

  value =
    name:
    { text, _type, ... }:
    if _type == "literalMD" then
      "- ${name}: ${plain text}"
    else if !lib.hasInfix "\n" text then
      "- ${name}: `${text}`"
    else
      lib.concatStringsSep "\n" (
        [
          "- ${name}:"
          ""
          "  ```nix"
        ]
        ++ map (line: if line == "" then "" else "  ${line}") (
          lib.splitString "\n" (lib.removeSuffix "\n" text)
        )
        ++ [ "  ```" ]
      );
in
''
  # Options of `${prefix}`

  All options of the NixOS module, `nix/module.nix`, and at the end where those of
  [the module for Home Manager](#home-manager) are others, made from them by
  `nix/tests/options-doc --write`. [README.md](../README.md) says what they are
  for.

  ${lib.concatMapStringsSep "\n" (
    key: "- [`${heading key}`](#${anchor (heading key)}): ${about.${key}}"
  ) sections}

  ${lib.concatMapStringsSep "\n\n" section sections}

  ${homeSection}
''
