# shellcheck shell=bash
# What lib answers to the cases of lib-cases.nix: part of nix/tests/run.
# shellcheck disable=SC2154 # set by nix/tests/run: here lib work

# One evaluation gives all the values; where one fails it ends, so that each of
# those cases has its own.
lib_answers() {
  nix-instantiate --eval --strict --json --expr "
    let
      plain = value: builtins.fromJSON (builtins.toJSON value);
      answer = case: builtins.tryEval (let value = plain case.expr; in builtins.deepSeq value value);
    in
    builtins.mapAttrs (_: case: answer case // { inherit (case) expected; })
      (import $here/lib-cases.nix { lib = import $lib; }).values" >"$work/answers" || return 1
  jq -r 'to_entries[] | select(.value | (.success and .value == .expected) | not)
    | "\(.key): wanted \(.value.expected), got \(.value | if .success then .value else "an error" end)"' \
    "$work/answers" >"$work/wrong"
  cat "$work/wrong"
  [ ! -s "$work/wrong" ]
}
# Whatever the stand-in offers is asked for there, except what Nix itself has, and
# file sets: of those it only checks that they exist.
lib_is_asked_for_all() {
  local name
  nix-instantiate --eval --strict --json --expr "
    let
      own = [ \"fileset\" ] ++ builtins.attrNames builtins;
      lib = removeAttrs (import $here/stub/lib.nix) own;
    in
    builtins.concatMap builtins.attrNames [ lib lib.types lib.types.ints ]" |
    jq -r '.[]' | while read -r name; do
    grep -rqwF -- "$name" "$here/lib-cases.nix" "$here/lib-cases" || echo "$name"
  done >"$work/unasked"
  cat "$work/unasked"
  [ ! -s "$work/unasked" ]
}
lib_refuses() {
  local cases="(import $here/lib-cases.nix { lib = import $lib; }).errors" index
  nix-instantiate --eval --strict --json --expr "
    builtins.mapAttrs (_: case: case.message) $cases" >"$work/messages" || return 1
  for ((index = 0; index < $(jq length "$work/messages"); index++)); do
    nix-instantiate --eval --strict --json --expr "
      (builtins.elemAt (builtins.attrValues $cases) $index).expr" >"$work/refused-$index" 2>&1 &
  done
  wait
  for ((index = 0; index < $(jq length "$work/messages"); index++)); do
    jq -r --rawfile said "$work/refused-$index" --argjson index "$index" '
      to_entries[$index] | select(.value as $message | $said | contains($message) | not)
      | "\(.key): wanted \(.value), got \($said)"' "$work/messages"
  done >"$work/wrong"
  cat "$work/wrong"
  [ ! -s "$work/wrong" ]
}

check "lib answers as nixpkgs' own does" lib_answers
check "lib refuses with the words of nixpkgs' own" lib_refuses
check "there is a case for whatever the stand-in's lib offers" lib_is_asked_for_all
