# shellcheck shell=bash
# The part of nix/tests/run for assertions and warnings: the cases of refused.nix.
# shellcheck disable=SC2154 # set by nix/tests/run: binary here lib package project work

# verdicts: one line per case: its name, the check, the mistake in the message, the
# messages of the corrected configuration, and the file of that configuration.
# A message begins with the option, and has a remedy after its colon.
verdicts() {
  local output
  for output in "$work"/type-error-*; do
    jq -Rsc --arg index "${output##*-}" '{key: $index, value: .}' "$output"
  done | jq -s from_entries >"$work/type-errors"
  jq -r --slurpfile errors "$work/type-errors" '
    .cases | to_entries | to_entries[] | (.key | tostring) as $index | .value.key as $name | .value.value
    | .message as $message
    | (if .kind == "type" then
        $errors[0][$index]
        | ["is rejected", if contains("error: ") and contains($message) then "" else "wanted: \($message); got: \(.)" end]
      else
        .refused
        | ["is reported with the remedy", if
            length == 1 and (.[0] | contains($message) and test("^services[.]metamcp[.][^ ]+ .*: .+[.]$"))
          then "" else "wanted: \($message); got: \(join(" "))" end]
      end) as $verdict
    | [$name] + $verdict + [(.accepted.messages | join(" ")), .accepted.file]
    | map(gsub("[\\n|]"; " ")) | join("|")' "$work/results"
}

# Evaluates the cases of refused.nix. One evaluation covers all cases except those where
# a type rejects a value. That ends an evaluation, so that each of them has its own.
evaluate_cases() {
  local all="import $here/refused-results.nix {
      lib = import $lib;
      package = \"$package\";
      packagedUnits = builtins.readDir $project/systemd;
    }" index
  nix-instantiate --eval --strict --json --read-write-mode --expr "$all" >"$work/results" || return 1
  for index in $(jq '.cases | to_entries | to_entries[] | select(.value.value.kind == "type").key' "$work/results"); do
    nix-instantiate --eval --strict --json --read-write-mode --expr "
      import $here/stub/eval.nix {
        lib = import $lib;
        modules =
          let table = import $here/refused.nix;
          in [ $project/nix/module.nix table.base (builtins.elemAt (builtins.attrValues table.cases) $index).refused ];
        package = \"$package\";
        packagedUnits = builtins.readDir $project/systemd;
      }" >"$work/type-error-$index" 2>&1 &
  done
  wait
  verdicts >"$work/verdicts"
}
heuristics_are_right() {
  nix-instantiate --eval --strict --json --expr "import $here/heuristics.nix { lib = import $lib; }" >"$work/heuristics" ||
    return 1
  cat "$work/heuristics"
  jq -e '. == []' "$work/heuristics"
}
every_kind_has_a_case() {
  jq -e '(.kinds | sort) == ([.cases[].kind] | unique - ["type"])' "$work/results" || {
    jq -r '(.kinds - [.cases[].kind] | .[] | "no case of \(.)"), ([.cases[].kind] - .kinds - ["type"] | .[] | "unknown: \(.)")' "$work/results"
    return 1
  }
}

# refuses MODULE MESSAGE: exactly one assertion fails, and its text contains MESSAGE.
refuses() {
  evaluate "$1" | jq -e --arg message "$2" '.failedAssertions | length == 1 and (.[0] | contains($message)) or error("\(.)")'
}
takes() { evaluate "$1" | jq -e '.failedAssertions == [] or error("\(.failedAssertions)")'; }

# systemd would not start such a unit.
a_group_with_the_name_of_a_dynamic_user_is_refused() {
  refuses '{ users.groups.mcp-hours = { }; }' 'users.groups declares a group of this name: rename the server or the group, or' &&
    takes '{ users.groups.mcp-hours = { }; users.users.alice.isNormalUser = true;
             services.metamcp.servers.hours.sandbox = { user = "alice"; group = "mcp-hours"; }; }'
}
# The server sees /run/user only if `home` is `writable`.
a_hidden_runtime_directory_is_refused() {
  local cwd='services.metamcp.servers.hours.cwd = "/run/user/1000/hours";' home
  for home in hidden read-only; do
    refuses "{ $cwd services.metamcp.servers.hours.sandbox.home = \"$home\"; }" 'sandbox.home to "writable".' || return 1
  done
  takes "{ $cwd services.metamcp.servers.hours.sandbox.home = \"writable\"; }" &&
    takes "{ $cwd services.metamcp.servers.hours.sandbox.readOnlyPaths = [ \"/run/user/1000/\" ]; }"
}
# Only the URL, the unit, the era, the key and the name are options of the upstream.
a_message_about_an_upstream_names_the_right_option() {
  refuses '{ services.metamcp.servers.far.env.A = "1"; }' 'services.metamcp.servers.far.env has no effect' &&
    refuses '{ services.metamcp.servers.far.sandbox.preset = "none"; }' 'services.metamcp.servers.far.sandbox has no effect' &&
    refuses '{ services.metamcp.servers.far = { headers.A = "1"; credentials.A = "/run/a"; }; }' 'services.metamcp.servers.far.credentials.A is'
}

check "the cases of assertions and warnings evaluate" evaluate_cases
check "a group with the name of a dynamic user is refused" a_group_with_the_name_of_a_dynamic_user_is_refused
check "a working directory in /run/user is refused with a remedy that helps" a_hidden_runtime_directory_is_refused
check "a message about an upstream names the option that causes it" a_message_about_an_upstream_names_the_right_option
check "secrets, downloaded programs and browsers are recognized" heuristics_are_right
check "every assertion and warning has a case" every_kind_has_a_case
touch "$work/verdicts"
while IFS='|' read -r name expectation mistake messages file; do
  if [ -z "$mistake" ]; then ok "$name $expectation"; else fail "$name $expectation" "$mistake"; fi
  if [ -n "$messages" ]; then
    fail "$name is accepted after the correction" "$messages"
  else
    check "$name is accepted after the correction" "$binary" check --no-files "$file"
  fi
done <"$work/verdicts"
