# Functions for strings, lists, sets and packages.
let
  inherit (builtins)
    attrNames
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    foldl'
    genList
    head
    isAttrs
    isFunction
    isList
    isPath
    isString
    length
    listToAttrs
    map
    mapAttrs
    match
    replaceStrings
    stringLength
    substring
    tail
    toJSON
    toString
    tryEval
    ;
in
rec {
  id = x: x;
  toList = x: if isList x then x else [ x ];
  optional = c: x: if c then [ x ] else [ ];
  optionals = c: x: if c then x else [ ];
  optionalString = c: s: if c then s else "";
  optionalAttrs = c: x: if c then x else { };
  nameValuePair = name: value: { inherit name value; };
  mapAttrs' = f: s: listToAttrs (map (n: f n s.${n}) (attrNames s));
  mapAttrsToList = f: s: map (n: f n s.${n}) (attrNames s);
  filterAttrs =
    p: s: listToAttrs (concatMap (n: optional (p n s.${n}) (nameValuePair n s.${n})) (attrNames s));
  genAttrs = names: f: listToAttrs (map (n: nameValuePair n (f n)) names);
  unique = foldl' (acc: x: if elem x acc then acc else acc ++ [ x ]) [ ];
  hasPrefix = p: s: substring 0 (stringLength p) s == p;
  hasSuffix =
    p: s:
    let
      n = stringLength s;
      k = stringLength p;
    in
    n >= k && substring (n - k) k s == p;
  removePrefix = p: s: if hasPrefix p s then substring (stringLength p) (stringLength s) s else s;
  removeSuffix = p: s: if hasSuffix p s then substring 0 (stringLength s - stringLength p) s else s;
  concatMapStringsSep =
    sep: f: l:
    concatStringsSep sep (map f l);
  concatMapStrings = concatMapStringsSep "";
  concatStrings = concatStringsSep "";
  escapeShellArg =
    arg:
    let
      text = toString arg;
    in
    if match "[[:alnum:],._+:@%/-]+" text != null then
      text
    else
      "'${replaceStrings [ "'" ] [ "'\\''" ] text}'";
  escapeShellArgs = concatMapStringsSep " " escapeShellArg;
  last = l: elemAt l (length l - 1);
  splitString = separator: text: filter isString (builtins.split (escapeRegex separator) text);
  toInt =
    text:
    let
      digits = match "[[:space:]]*(-?[[:digit:]]+)[[:space:]]*" text;
    in
    if digits == null then
      throw "toInt: Could not convert ${toJSON text} to int."
    else if match "0[[:digit:]]+" (head digits) != null then
      throw "toInt: Ambiguity in interpretation of ${toJSON text} between octal and zero padded integer."
    else
      builtins.fromJSON (head digits);
  setAttrByPath = p: v: if p == [ ] then v else { ${head p} = setAttrByPath (tail p) v; };
  attrByPath =
    p: d: s:
    if p == [ ] then
      s
    else if isAttrs s && s ? ${head p} then
      attrByPath (tail p) d s.${head p}
    else
      d;
  getBin = package: package.bin or package.out or package;
  isDerivation = x: isAttrs x && x.type or null == "derivation";
  recursiveUpdate =
    a: b:
    if isAttrs a && isAttrs b && !isDerivation a && !isDerivation b then
      a // mapAttrs (n: v: if a ? ${n} then recursiveUpdate a.${n} v else v) b
    else
      b;
  imap =
    start: f: l:
    genList (i: f (i + start) (elemAt l i)) (length l);
  isStringLike = x: isString x || isPath x || isAttrs x && (x ? outPath || x ? __toString);
  hasInfix = infix: s: length (builtins.split (escapeRegex infix) s) > 1;
  escapeRegex =
    let
      special = [
        "\\"
        "["
        "{"
        "("
        ")"
        "^"
        "$"
        "?"
        "*"
        "+"
        "|"
        "."
      ];
    in
    replaceStrings special (map (c: "\\${c}") special);
  lowerCase = genList (i: substring i 1 "abcdefghijklmnopqrstuvwxyz") 26;
  upperCase = genList (i: substring i 1 "ABCDEFGHIJKLMNOPQRSTUVWXYZ") 26;
  toUpper = replaceStrings lowerCase upperCase;
  toLower = replaceStrings upperCase lowerCase;
  # The source is the directory itself, if every part of the file set exists.
  fileset = {
    fileFilter = _: path: path;
    unions = paths: filter (p: builtins.pathExists p || throw "${toString p} does not exist") paths;
    toSource = { root, fileset }: if length fileset > 0 then root else throw "empty fileset";
  };
  isTypeOf = t: x: isAttrs x && x._type or null == t;
  showOption =
    loc:
    concatStringsSep "." (
      map (
        p: if match "[a-zA-Z_][a-zA-Z0-9_'-]*" p != null || match "[*]|<.*>" p != null then p else toJSON p
      ) loc
    );
  showFiles = concatMapStringsSep " and " (f: "`${toString f}'");
  pretty =
    v:
    let
      r = tryEval (
        toJSON (
          if isFunction v then
            "<function>"
          else if isDerivation v then
            "<derivation ${v.name or "?"}>"
          else
            v
        )
      );
    in
    if isFunction v then
      "<function>"
    else if r.success then
      r.value
    else
      "<unprintable>";
  showDefs = concatMapStrings (d: "\n- In `${toString d.file}': ${pretty d.value}");
}
