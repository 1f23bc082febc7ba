# Values in the configuration of a server that look like secrets. The warnings use these
# heuristics; src/import/secret_detection.rs has similar ones, with the same words.
{ lib }:
let
  inherit (builtins)
    elem
    elemAt
    filter
    head
    isString
    length
    match
    split
    tail
    ;

  startsWithOneOf = beginnings: text: lib.any (beginning: lib.hasPrefix beginning text) beginnings;
  wordsOf = name: filter isString (split "[^A-Z0-9]+" (lib.toUpper name));

  # The name parts are any part of the name of a variable or header, and whole words in
  # the name of a command line option.
  words = builtins.fromJSON (builtins.readFile ../src/config/secret_words.json);
  secretParts = builtins.concatStringsSep "|" words.name_parts;
  secretWords = words.name_words ++ words.name_parts;
  # Words for a number, a path, an address or a choice, and words that only look like
  # one of the secret words.
  harmlessWords = [
    "COUNT"
    "DIR"
    "DIRECTORY"
    "ENABLED"
    "ENV"
    "FILE"
    "HOST"
    "HOTKEY"
    "HOTKEYS"
    "KEYBINDINGS"
    "KEYBOARD"
    "KEYCLOAK"
    "KEYMAP"
    "KEYWORDS"
    "LENGTH"
    "LIMIT"
    "MAX"
    "METHOD"
    "MODE"
    "PATH"
    "PROVIDER"
    "TIMEOUT"
    "TOKENIZER"
    "TOKENIZERS"
    "TOKENS"
    "TTL"
    "TYPE"
    "URL"
    "VERSION"
  ];

  # The end of a name decides: DOMAIN_PASSWORD is a secret, COOKIE_DOMAIN is not.
  isHarmlessName =
    name:
    match "(.*[^A-Z0-9])?(BUDGET|DOMAIN|KEY.ID|NAME|PREFIX|PUBLIC.KEY|REGISTRY|SORT.KEY|URI)" name
    != null
    ||
      lib.any (word: elem word harmlessWords) (wordsOf name)
      && !elem (lib.last (wordsOf name)) secretWords;

  # The prefixes of tokens of well-known issuers.
  beginnings = words.token_prefixes ++ [ "Bearer " ];

  isValueSecret =
    value:
    startsWithOneOf beginnings value
    && builtins.stringLength value >= 12
    && match "[A-Za-z0-9_-]+=.+" value == null;
  # A reference, a path, a shell variable, a boolean, or an empty text.
  isHarmless =
    value:
    startsWithOneOf [
      "credential:"
      "env:"
      "/"
      "$"
    ] value
    || match "[[:space:]]*|true|false" value != null;

  isSecretSetting =
    isName: name: value:
    urlHasSecret value
    ||
      !isHarmless value
      && (isValueSecret value || isName (lib.toUpper name) && !isHarmlessName (lib.toUpper name));

  # True if a URL contains a secret: a password, or a value in its query.
  urlHasSecret =
    value:
    match "[a-z]+://[^/?#@]*:[^/?#@]+@.*" value != null
    ||
      match "[a-z]+://.*" value != null
      && lib.any (
        part:
        let
          named = setting part;
        in
        named != null && isSecretSetting hasSecretWord (head named) (elemAt named 2)
      ) (tail (filter isString (split "[?&#]" value)));

  # The parts of a setting with a name: `--token=x`, `TOKEN=x`, `Authorization: x`.
  setting = text: match "-*([A-Za-z0-9_-]+)(=|: *)(.+)" text;
  hasSecretWord = name: lib.any (word: elem word secretWords) (wordsOf name);
in
rec {
  inherit urlHasSecret;

  # True if the value of a variable or header is a secret.
  isSecret = isSecretSetting (name: match ".*(${secretParts}).*" name != null || hasSecretWord name);

  # True if a list of arguments contains a secret.
  argumentsHaveSecret =
    args:
    let
      named = setting (head args);
      next = elemAt args 1;
    in
    args != [ ]
    && (
      isValueSecret (head args)
      || urlHasSecret (head args)
      || named != null && isSecretSetting hasSecretWord (elemAt named 0) (elemAt named 2)
      ||
        named == null
        && length args > 1
        && match "--?[A-Za-z0-9_-]+" (head args) != null
        && !lib.hasPrefix "-" next
        && hasSecretWord (head args)
        && isSecretSetting hasSecretWord (head args) next
      || argumentsHaveSecret (tail args)
    );
}
