# shellcheck shell=bash
# The part of nix/tests/run for the cases of lib-cases.nix.
# shellcheck disable=SC2154 # set by nix/tests/run: here lib work

# One evaluation covers all cases that return a value.
lib_returns_the_expected_values() {
  nix-instantiate --eval --strict --json --expr "
    let
      plain = value: builtins.fromJSON (builtins.toJSON value);
      result = case: builtins.tryEval (let value = plain case.expr; in builtins.deepSeq value value);
    in
    builtins.mapAttrs (_: case: result case // { inherit (case) expected; })
      (import $here/lib-cases.nix { lib = import $lib; }).values" >"$work/values" || return 1
  jq -r 'to_entries[] | select(.value | (.success and .value == .expected) | not)
    | "\(.key): wanted \(.value.expected), got \(.value | if .success then .value else "an error" end)"' \
    "$work/values" >"$work/wrong"
  cat "$work/wrong"
  [ ! -s "$work/wrong" ]
}
# Every function and type of the stub has a case, except builtins of Nix, and file sets,
# which the stub only checks for existence.
every_function_of_the_stub_has_a_case() {
  local name
  nix-instantiate --eval --strict --json --expr "
    let
      own = [ \"fileset\" ] ++ builtins.attrNames builtins;
      lib = removeAttrs (import $here/stub/lib.nix) own;
    in
    builtins.concatMap builtins.attrNames [ lib lib.types lib.types.ints ]" |
    jq -r '.[]' | while read -r name; do
    grep -rqwF -- "$name" "$here/lib-cases.nix" "$here/lib-cases" || echo "$name"
  done >"$work/without-case"
  cat "$work/without-case"
  [ ! -s "$work/without-case" ]
}
# An error ends an evaluation, so that each of these cases has its own.
lib_fails_with_the_expected_messages() {
  local cases="(import $here/lib-cases.nix { lib = import $lib; }).errors" index
  nix-instantiate --eval --strict --json --expr "
    builtins.mapAttrs (_: case: case.message) $cases" >"$work/messages" || return 1
  for ((index = 0; index < $(jq length "$work/messages"); index++)); do
    nix-instantiate --eval --strict --json --expr "
      (builtins.elemAt (builtins.attrValues $cases) $index).expr" >"$work/error-$index" 2>&1 &
  done
  wait
  for ((index = 0; index < $(jq length "$work/messages"); index++)); do
    jq -r --rawfile error "$work/error-$index" --argjson index "$index" '
      to_entries[$index] | select(.value as $message | $error | contains($message) | not)
      | "\(.key): wanted \(.value), got \($error)"' "$work/messages"
  done >"$work/wrong"
  cat "$work/wrong"
  [ ! -s "$work/wrong" ]
}

check "lib returns the values of nixpkgs' lib" lib_returns_the_expected_values
check "lib fails with the messages of nixpkgs' lib" lib_fails_with_the_expected_messages
check "every function and type of the stub's lib has a case" every_function_of_the_stub_has_a_case
