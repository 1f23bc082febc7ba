# The package or image that a command line downloads, as `npx`, `uvx` or `docker run` do.
# The warnings use these heuristics; src/doctor/pinned_versions.rs has the same ones.
{ lib }:
let
  inherit (builtins)
    elem
    elemAt
    head
    length
    match
    tail
    ;

  startsWithOneOf = beginnings: text: lib.any (beginning: lib.hasPrefix beginning text) beginnings;
  # The parts of an option with a value: `--package=x`.
  setting = text: match "-*([A-Za-z0-9_-]+)(=|: *)(.+)" text;

  # The arguments of a program that downloads and runs a package: `args` begin at the
  # place of the package, and `named` are the options that name the package instead.
  packageArguments =
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
  # Options that take a value other than the package.
  optionsWithValue = [
    "--index-url"
    "--python"
    "--registry"
    "--with"
    "-p"
  ];
  packageIn =
    { args, named }@arguments:
    let
      first = head args;
      rest = arguments // {
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
    else if elem first optionsWithValue then
      packageIn (rest // { args = if tail args == [ ] then [ ] else tail (tail args); })
    else if lib.hasPrefix "-" first then
      packageIn rest
    else
      first;

  # The image of a container: the first word that is neither an option nor its value.
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
    # The first character may be the `@` of a scope.
    || match ".+(@v?|==)[0-9]+[.][0-9]+[.].+" package != null
    || match ".+@[0-9a-f]{7,}" package != null
    || match ".+==[0-9].*" package != null;
  isImagePinned = image: match ".*@sha256:[0-9a-f]+|.*:[^/]*[0-9][^/]*" image != null;

  fileName = path: builtins.unsafeDiscardStringContext (baseNameOf path);
in
{
  # The package or image that a command line downloads before it runs it: its name, and
  # whether its version is pinned. null if the command line downloads nothing.
  fetched =
    command: args:
    let
      program = fileName command;
      isContainer = elem program [
        "docker"
        "podman"
      ];
      arguments = packageArguments program args;
      name =
        if isContainer then
          if args != [ ] && head args == "run" then imageIn (tail args) else null
        else if arguments != null then
          packageIn arguments
        else
          null;
    in
    if name == null then
      null
    else
      {
        inherit isContainer name;
        # The first character may be the `@` of a scope.
        unversioned =
          let
            parts = match (if isContainer then "(.*):[^:/]*" else "(.[^@=]*).*") name;
          in
          if parts == null then name else head parts;
        isPinned = if isContainer then isImagePinned name else isPackagePinned name;
      };
}
