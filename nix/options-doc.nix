# Generates the reference of all options in Markdown, nix/options.md.
#
#   import ./options-doc.nix { inherit lib; } { nixos = OPTIONS; home = OPTIONS; }
#
# OPTIONS is the attribute `options` of an evaluation of NixOS or of Home Manager.
{ lib }:
{ home, nixos }:
let
  prefix = "services.metamcp";

  # The summary of each section, by its path below services.metamcp. A section without
  # one fails the evaluation.
  summaries = {
    "" = "The service itself.";
    servers = "The MCP servers, by name.";
    "servers.<name>.sandbox" = "The sandbox of a server unit.";
    upstream = "One endpoint that clients see unchanged.";
    metrics = "The metrics at an address of their own.";
    claudeCode = "The configuration of Claude Code as a client.";
    settings = "The configuration file.";
    "settings.auth" = "The logins at servers that require one.";
    "settings.breaker" = "The circuit breakers, which leave failing servers alone.";
    "settings.catalog" = "The lists that metamcp keeps of servers without a connection.";
    "settings.execute" = "The scripts that metamcp runs for clients.";
    "settings.health" = "The liveness checks of servers.";
    "settings.listen" = "The addresses for clients and operators, and the sessions of clients.";
    "settings.pool" = "The number and lifetime of connections to servers.";
    "settings.provision" = "The servers that metamcp may add on request.";
    "settings.provision.servers" = "The servers that metamcp may add on request, by name.";
    "settings.search" = "The search for tools.";
    "settings.servers" = "The servers as tables of the configuration file, for exact control.";
    "settings.service" = "The behaviour of the service as a whole.";
    "settings.tasks" = "The calls that continue without their callers.";
    "settings.telemetry" = "The view that operators have of calls.";
    "settings.tools" = "The meta-tools of the view `meta`.";
  };
  # The first sections. The others follow in alphabetical order.
  first = [
    ""
    "servers"
    "servers.<name>.sandbox"
    "upstream"
    "metrics"
    "claudeCode"
  ];

  # The section of an option.
  sectionOf =
    { loc, ... }:
    let
      # The path below services.metamcp, padded so that it has at least three parts.
      path = lib.tail (lib.tail loc) ++ [
        ""
        ""
      ];
      part = lib.elemAt path;
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
    else if summaries ? ${part 0} then
      part 0
    else
      "";

  # Without the options that the module system declares in each submodule.
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
    first ++ lib.filter (key: !lib.elem key first) (lib.attrNames bySection)
  );

  heading = key: "${prefix}${lib.optionalString (key != "") ".${key}"}";
  # The anchor of a heading, as GitHub generates it.
  anchor =
    text:
    lib.toLower (lib.concatStrings (lib.filter lib.isString (builtins.split "[^A-Za-z0-9_-]+" text)));

  # The option with the name of its section is at the head of the section.
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
      ++ (if heads == [ ] then [ summaries.${key} ] else map body heads)
      ++ lib.optional (repeated key != [ ]) (
        "Options as for [a server](#${anchor (heading "servers")}): ${
          lib.concatMapStringsSep ", " (option: "`${lib.removePrefix "${name}.<name>." option.name}`") (
            repeated key
          )
        }."
      )
      ++ map (option: "### `${option.name}`\n\n${body option}") others
    );

  # Server tables of the file repeat most options of `servers`, and list them only by name.
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
    && documented twin == documented option;

  # -------------------------------------------------------------- Home Manager
  ofHome = list home;
  homeByName = lib.listToAttrs (map (option: lib.nameValuePair option.name option) ofHome);
  isMissing = option: !(homeByName ? ${option.name});
  # The missing options, without those below another missing option.
  onlyNixos = lib.filter (
    option:
    isMissing option
    && !lib.any (other: isMissing other && lib.hasPrefix "${other.name}." option.name) all
  ) all;
  different = lib.filter (
    option: !(byName ? ${option.name}) || documented option != documented byName.${option.name}
  ) ofHome;
  homeSection = lib.concatStringsSep "\n\n" (
    [
      "## Home Manager"
      "The Home Manager module, `nix/home-module.nix`, has all options above except these: ${
        lib.concatMapStringsSep ", " (option: "`${lib.removePrefix "${prefix}." option.name}`") onlyNixos
      }. The following options differ:"
    ]
    ++ map (option: "### `${option.name}` (Home Manager)\n\n${body option}") different
  );

  # The documented parts of an option.
  documented = option: {
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

  # Submodules are shortened, because the options below document them. Patterns are
  # code.
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

  # Removes the roles of NixOS' Markdown: {option}`x` becomes `x`.
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

  This page lists all options of the NixOS module, `nix/module.nix`. The last section
  lists the differences of [the Home Manager module](#home-manager).
  [NixOS](../docs/operate/nixos.md) and [Home Manager](../docs/operate/home-manager.md) explain both modules.
  `nix/tests/options-doc --write` generates this page from the modules.

  ${lib.concatMapStringsSep "\n" (
    key: "- [`${heading key}`](#${anchor (heading key)}): ${summaries.${key}}"
  ) sections}

  ${lib.concatMapStringsSep "\n\n" section sections}

  ${homeSection}
''
