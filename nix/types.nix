# The types and rules of values that do not follow from the options of a key alone.
{ lib }:
let
  inherit (lib) types;

  factor = {
    ms = 1;
    s = 1000;
    m = 60 * 1000;
    h = 60 * 60 * 1000;
  };

  # The duration of a text in milliseconds; null if it is not a duration. Eight digits
  # are more than a day in the smallest unit.
  milliseconds =
    text:
    let
      parts = builtins.match "0*([1-9][0-9]{0,7}|0)(ms|s|m|h)" text;
    in
    if parts == null then
      null
    else
      builtins.fromJSON (builtins.elemAt parts 0) * factor.${builtins.elemAt parts 1};

  # The rule of the program for server names.
  names = (builtins.fromJSON (builtins.readFile ./schema.json)).properties.servers.propertyNames;

  matching =
    description: pattern:
    types.strMatching pattern
    // {
      inherit description;
      descriptionClass = "noun";
    };
in
{
  inherit milliseconds;

  # The rule for server names, as a predicate and in words.
  isName =
    name:
    builtins.match names.pattern name != null
    && builtins.stringLength name <= names.maxLength
    && !lib.hasInfix names.not.pattern name;
  nameRule = "1 to ${toString names.maxLength} letters, digits, - and _, a letter or digit first and last, and no __";

  absolutePath = matching "absolute path, as a string" "/.*";
  httpUrl = matching "URL that starts with http:// or https://" "https?://.+";

  # The program also accepts a port with zeros in front, which Nix does not read.
  address = matching "IP address and port, ADDRESS:PORT or [ADDRESS]:PORT" "([0-9.]+|\\[[0-9a-fA-F:.]+]):(0|[1-9][0-9]{0,4})";
}
