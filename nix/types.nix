# Types of values in the configuration of metamcp.
{ lib }:
let
  inherit (lib) types;
  namespacePart = "@?[A-Za-z0-9_.-]+";
in
{
  duration = types.strMatching "[0-9]+(ms|s|m|h)" // {
    description = "duration: a whole number and its unit, ms, s, m or h";
  };

  # Whose server it is, and whose are trusted.
  namespace = types.strMatching "${namespacePart}(/${namespacePart})*" // {
    description = "namespace, as in internal/github";
  };
  trust = types.strMatching "${namespacePart}(/${namespacePart})*(/\\*)?" // {
    description = "namespace, or all below one as in @modelcontextprotocol/*";
  };
}
