# Reads a unit file: { Section.Key = "value"; }, a key that is there more than
# once as a list.  Continued lines are not understood.
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
      known = unit.${section}.${key} or null;
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
            ${key} = if known == null then value else lib.toList known ++ [ value ];
          };
        };
      };
in
(lib.foldl' add {
  section = null;
  unit = { };
} lines).unit
