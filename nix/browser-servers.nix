# Servers that drive a browser, by their command line. A heuristic for the warnings.
{ lib }:
let
  inherit (builtins)
    elem
    filter
    match
    ;
  inherit (import ./fetched-programs.nix { inherit lib; }) fetched;

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
{
  # True if a command line starts a server that drives a browser. The clients of such a
  # server would share the state of its browser.
  drivesBrowser =
    command: args:
    let
      download = fetched command args;
      names = [
        (fileName command)
      ]
      ++ lib.optional (download != null) download.name
      ++ lib.optionals (elem (fileName command) interpreters) (
        map fileName (filter (arg: !lib.hasPrefix "-" arg) args)
      );
    in
    lib.any (name: match "(.*[^a-z])?(${browsers})([^a-z].*)?" (lib.toLower name) != null) names;
}
