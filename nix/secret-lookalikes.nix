# What the configuration of a server looks like: whether there is a secret in it,
# whether the command fetches a program, whether that drives a browser.  Guesses,
# for warnings; src/import/secret_detection.rs and src/doctor/pinned_versions.rs guess the same.
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

  # The names of settings that hold secrets: parts of the name of a variable or
  # header, and whole words of that of an option on a command line.
  secretParts = "AUTHORIZATION|KEY|PASSWORD|SECRET|TOKEN|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE|PRIVATE|BEARER|SIGNATURE";
  secretWords = [
    "APIKEY"
    "AUTH"
    "JWT"
    "PASS"
    "PAT"
    "PIN"
    "PWD"
  ]
  ++ filter isString (split "[|]" secretParts);
  # Words that say that a number, a path, an address or a choice is meant, and some
  # that only look like those.
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

  # The end of a name says what it is: DOMAIN_PASSWORD is a secret, COOKIE_DOMAIN not.
  isHarmlessName =
    name:
    match "(.*[^A-Z0-9])?(BUDGET|DOMAIN|KEY.ID|NAME|PREFIX|PUBLIC.KEY|REGISTRY|SORT.KEY|URI)" name
    != null
    ||
      lib.any (word: elem word harmlessWords) (wordsOf name)
      && !elem (lib.last (wordsOf name)) secretWords;

  # How tokens begin that are given out by whom they are for.
  beginnings = [
    "AIza"
    "AKIA"
    "ASIA"
    "ATATT"
    "Bearer "
    "SG."
    "eyJ"
    "figd_"
    "ghp_"
    "gho_"
    "ghs_"
    "ghu_"
    "github_pat_"
    "glpat-"
    "gsk_"
    "hf_"
    "lin_api_"
    "npm_"
    "ntn_"
    "nvapi-"
    "pplx-"
    "pypi-"
    "sk-"
    "sk_"
    "tvly-"
    "whsec_"
    "xai-"
    "xapp-"
    "xoxb-"
    "xoxp-"
    "-----BEGIN"
  ];

  isValueSecret =
    value:
    startsWithOneOf beginnings value
    && builtins.stringLength value >= 12
    && match "[A-Za-z0-9_-]+=.+" value == null;
  # A reference, a path, a variable of a shell, a switch, or nothing.
  isHarmless =
    value:
    startsWithOneOf [
      "credential:"
      "env:"
      "/"
      "$"
    ] value
    || match "[[:space:]]*|true|false" value != null;

  isSecretNamed =
    isName: name: value:
    hasSecret value
    ||
      !isHarmless value
      && (isValueSecret value || isName (lib.toUpper name) && !isHarmlessName (lib.toUpper name));

  # Whether there is a URL with one: the password of a user, or a value in its query.
  hasSecret =
    value:
    match "[a-z]+://[^/?#@]*:[^/?#@]+@.*" value != null
    ||
      match "[a-z]+://.*" value != null
      && lib.any (
        part:
        let
          named = setting part;
        in
        named != null && isSecretNamed hasSecretWord (head named) (elemAt named 2)
      ) (tail (filter isString (split "[?&#]" value)));

  # A setting with a name: `--token=x`, `TOKEN=x`, `Authorization: x`.
  setting = text: match "-*([A-Za-z0-9_-]+)(=|: *)(.+)" text;
  hasSecretWord = name: lib.any (word: elem word secretWords) (wordsOf name);

  # The arguments of a program that fetches what it runs, from the name of the
  # package on, and the options that name it elsewhere.
  fetchers =
    let
      of = named: args: { inherit args named; };
      npm = of [
        "-p"
        "--package"
      ];
    in
    program: args:
    let
      first = if args == [ ] then "" else head args;
      second = if length args < 2 then "" else elemAt args 1;
    in
    if program == "npx" || program == "bunx" then
      npm args
    else if
      program == "npm"
      && elem first [
        "exec"
        "x"
      ]
      || program == "bun" && first == "x"
    then
      npm (tail args)
    else if
      elem program [
        "pnpm"
        "yarn"
      ]
      && first == "dlx"
    then
      npm (tail args)
    else if program == "uvx" then
      of [ "--from" ] args
    else if program == "uv" && first == "tool" && second == "run" then
      of [ "--from" ] (tail (tail args))
    else if program == "pipx" && first == "run" then
      of [ "--spec" ] (tail args)
    else
      null;
  # These are followed by a value that is no package.
  valued = [
    "--index-url"
    "--python"
    "--registry"
    "--with"
    "-p"
  ];
  packageIn =
    { args, named }@found:
    let
      first = head args;
      rest = found // {
        args = tail args;
      };
      value = setting first;
    in
    if args == [ ] then
      null
    else if elem first named then
      if tail args == [ ] then null else elemAt args 1
    else if value != null && lib.any (option: lib.hasPrefix "${option}=" first) named then
      elemAt value 2
    else if elem first valued then
      packageIn (rest // { args = if tail args == [ ] then [ ] else tail (tail args); })
    else if lib.hasPrefix "-" first then
      packageIn rest
    else
      first;

  # The image of a container: the first word that is no option and no value of one.
  imageIn =
    args:
    let
      first = head args;
    in
    if args == [ ] then
      null
    else if
      match "--?[a-z-]+=.*|-[itdP]+|--(detach|init|interactive|privileged|read-only|rm|tty)" first != null
    then
      imageIn (tail args)
    else if lib.hasPrefix "-" first then
      imageIn (if tail args == [ ] then [ ] else tail (tail args))
    else
      first;

  isPackagePinned =
    package:
    startsWithOneOf [
      "."
      "/"
      "~"
    ] package
    # The first letter may be that of a scope.
    || match ".+(@v?|==)[0-9]+[.][0-9]+[.].+" package != null
    || match ".+@[0-9a-f]{7,}" package != null
    || match ".+==[0-9].*" package != null;
  isImagePinned = image: match ".*@sha256:[0-9a-f]+|.*:[^/]*[0-9][^/]*" image != null;

  browsers = "browser|browserbase|browsermcp|chrome|chromium|firefox|playwright|puppeteer|selenium|stagehand|webdriver";
  interpreters = [
    "bun"
    "deno"
    "java"
    "node"
    "python"
    "python3"
  ];
  fileName = path: builtins.unsafeDiscardStringContext (baseNameOf path);
in
rec {
  inherit hasSecret;

  # Whether the value of a variable or a header is one.
  isSecret = isSecretNamed (name: match ".*(${secretParts}).*" name != null || hasSecretWord name);

  # Whether a list of arguments has one.
  haveSecret =
    args:
    let
      named = setting (head args);
      next = elemAt args 1;
    in
    args != [ ]
    && (
      isValueSecret (head args)
      || hasSecret (head args)
      || named != null && isSecretNamed hasSecretWord (elemAt named 0) (elemAt named 2)
      ||
        named == null
        && length args > 1
        && match "--?[A-Za-z0-9_-]+" (head args) != null
        && !lib.hasPrefix "-" next
        && hasSecretWord (head args)
        && isSecretNamed hasSecretWord (head args) next
      || haveSecret (tail args)
    );

  # What a command line fetches before it runs it, null if nothing: its name, and
  # whether a version is said.
  fetched =
    command: args:
    let
      program = fileName command;
      isContainer = elem program [
        "docker"
        "podman"
      ];
      found = fetchers program args;
      name =
        if isContainer then
          if args != [ ] && head args == "run" then imageIn (tail args) else null
        else if found != null then
          packageIn found
        else
          null;
    in
    if name == null then
      null
    else
      {
        inherit isContainer name;
        # The first letter may be that of a scope.
        unversioned =
          let
            parts = match (if isContainer then "(.*):[^:/]*" else "(.[^@=]*).*") name;
          in
          if parts == null then name else head parts;
        isPinned = if isContainer then isImagePinned name else isPackagePinned name;
      };

  # Whether a command line is that of a server which drives a browser, and so
  # keeps a state that its clients would share.
  drivesBrowser =
    command: args:
    let
      what = fetched command args;
      names = [
        (fileName command)
      ]
      ++ lib.optional (what != null) what.name
      ++ lib.optionals (elem (fileName command) interpreters) (
        map fileName (filter (arg: !lib.hasPrefix "-" arg) args)
      );
    in
    lib.any (name: match "(.*[^a-z])?(${browsers})([^a-z].*)?" (lib.toLower name) != null) names;
}
