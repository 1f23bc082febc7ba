# The types of values in the configuration of metamcp, with the limits of the program.
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

  isBetween =
    least: most: text:
    let
      value = milliseconds text;
    in
    value != null && value >= milliseconds least && value <= milliseconds most;

  # A text that passes a check.
  text =
    description: check:
    types.addCheck types.str check
    // {
      inherit description;
      descriptionClass = "nonRestrictiveClause";
    };

  durationBetween =
    least: most:
    text "duration: a whole number and its unit, ms, s, m or h, from ${least} to ${most}" (
      isBetween least most
    );

  matching =
    description: pattern:
    types.strMatching pattern
    // {
      inherit description;
      descriptionClass = "noun";
    };

  namespacePart = "@?[A-Za-z0-9_.-]+";
  # The names that LoadCredential= accepts.
  credential = "credential:[^./][^/]*";
in
{
  inherit durationBetween milliseconds;

  # The rule for server names, as a predicate and in words.
  isName =
    name:
    builtins.match "[A-Za-z0-9]([A-Za-z0-9_-]{0,38}[A-Za-z0-9])?" name != null
    && !lib.hasInfix "__" name;
  nameRule = "1 to 40 letters, digits, - and _, a letter or digit first and last, and no __";

  # The program rejects a longer duration as a mistake.
  duration = durationBetween "1ms" "24h";

  # "0s" means never, or at once.
  durationOrZero =
    text "duration: a whole number and its unit, ms, s, m or h, 0s or from 1ms to 24h"
      (value: isBetween "0s" "24h" value);

  # A non-empty text of at most `most` bytes.
  textUpTo =
    most:
    text "non-empty string of at most ${toString most} bytes" (
      value: builtins.match "[ \t\n]*" value == null && builtins.stringLength value <= most
    );

  # A list with `least` to `most` entries.
  listBetween =
    least: most: type:
    types.addCheck (types.listOf type) (
      list: builtins.length list >= least && builtins.length list <= most
    )
    // {
      description = "list of ${
        if least == 0 then "at most ${toString most}" else "${toString least} to ${toString most}"
      } ${type.description}";
      descriptionClass = "composite";
    };

  absolutePath = matching "absolute path, as a string" "/.*";
  # The address of a Unix socket holds at most 107 bytes.
  socketPath = matching "absolute path of a socket, as a string of at most 107 bytes" "/.{1,106}";
  credential = matching "reference to a secret, credential:NAME" credential;
  credentialOrEnv = matching "reference to a secret, credential:NAME or env:NAME" "${credential}|env:.*";
  credentialOrPath = matching "absolute path as a string, or credential:NAME" "${credential}|/.*";
  httpUrl = matching "URL that starts with http://" "http://.+";
  url = matching "URL that starts with http:// or https://" "https?://.+";

  address = matching "IP address and port, ADDRESS:PORT or [ADDRESS]:PORT" "([0-9.]+|\\[[0-9a-fA-F:.]+]):(0|[1-9][0-9]{0,4})";
  host = matching "host name or IP address, without a port" "[^:/ ]+|[0-9a-fA-F:.]+";
  origin = matching "origin, SCHEME://HOST or SCHEME://HOST:PORT" "[^:/ ]+://[^/ ]+";
  group = matching "name of a group" "[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}";
  unit = matching "name of a unit, without @ and suffix" "[A-Za-z0-9:_.-]+";
  view = matching "direct, meta or passthrough:NAME" "direct|meta|passthrough:.+";
  cache = matching "absolute path as a string, or off" "/.+|off";

  # The owner of a server, and the owners that are trusted.
  namespace =
    types.addCheck (matching "namespace, as in internal/github" "${namespacePart}(/${namespacePart})*")
      (value: builtins.stringLength value <= 128);
  trust = matching "namespace, or all below one as in @modelcontextprotocol/*" "${namespacePart}(/${namespacePart})*(/\\*)?";
}
