# Parses a unit file into { Section.Key = "value"; }. A repeated key becomes a list.
# Continued lines are not supported.
{ lib }:
file:
let
  lines = lib.filter (line: line != "" && !lib.hasPrefix "#" line) (
    lib.splitString "\n" (lib.readFile file)
  );
  add =
    { section, unit }:
    line:
    let
      header = builtins.match "\\[(.+)]" line;
      pair = builtins.match "([^=]+)=(.*)" line;
      key = lib.head pair;
      value = lib.last pair;
      previous = unit.${section}.${key} or null;
    in
    if header != null then
      {
        section = lib.head header;
        inherit unit;
      }
    else
      {
        inherit section;
        unit = unit // {
          ${section} = unit.${section} or { } // {
            ${key} = if previous == null then value else lib.toList previous ++ [ value ];
          };
        };
      };
in
(lib.foldl' add {
  section = null;
  unit = { };
} lines).unit
