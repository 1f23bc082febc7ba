# shellcheck shell=bash
# The part of nix/tests/run that is about what the module refuses and warns about:
# the cases of refused.nix.
# shellcheck disable=SC2154 # set by nix/tests/run: binary here lib package project work

# verdicts: for each case a line with its name, how it is told, what is wrong with
# that, what is said where it is set right, and the file that then comes of it.
# A message names the option first and has something after its colon.
verdicts() {
  local words
  for words in "$work"/words-*; do
    jq -Rsc --arg index "${words##*-}" '{key: $index, value: .}' "$words"
  done | jq -s from_entries >"$work/words"
  jq -r --slurpfile words "$work/words" '
    .cases | to_entries | to_entries[] | (.key | tostring) as $index | .value.key as $name | .value.value
    | .message as $message
    | (if .kind == "type" then
        $words[0][$index]
        | ["is refused", if contains("error: ") and contains($message) then "" else "wanted: \($message); got: \(.)" end]
      else
        .refused
        | ["is told with the remedy", if
            length == 1 and (.[0] | contains($message) and test("^services[.]metamcp[.][^ ]+ .*: .+[.]$"))
          then "" else "wanted: \($message); got: \(join(" "))" end]
      end) as $verdict
    | [$name] + $verdict + [(.accepted.told | join(" ")), .accepted.file]
    | map(gsub("[\\n|]"; " ")) | join("|")' "$work/judged"
}

# The cases of refused.nix.  One evaluation tells of all of them; where a type
# refuses a value the evaluation ends, so that each of those cases has its own.
judge() {
  local of="import $here/judged.nix {
      lib = import $lib;
      package = \"$package\";
      packagedUnits = builtins.readDir $project/systemd;
    }" index
  nix-instantiate --eval --strict --json --read-write-mode --expr "$of" >"$work/judged" || return 1
  for index in $(jq '.cases | to_entries | to_entries[] | select(.value.value.kind == "type").key' "$work/judged"); do
    nix-instantiate --eval --strict --json --read-write-mode --expr "
      import $here/stub/eval.nix {
        lib = import $lib;
        modules =
          let table = import $here/refused.nix;
          in [ $project/nix/module.nix table.base (builtins.elemAt (builtins.attrValues table.cases) $index).refused ];
        package = \"$package\";
        packagedUnits = builtins.readDir $project/systemd;
      }" >"$work/words-$index" 2>&1 &
  done
  wait
  verdicts >"$work/verdicts"
}
guesses_are_right() {
  nix-instantiate --eval --strict --json --expr "import $here/secret-lookalikes.nix { lib = import $lib; }" >"$work/guesses" ||
    return 1
  cat "$work/guesses"
  jq -e '. == []' "$work/guesses"
}
every_kind_has_a_case() {
  jq -e '(.kinds | sort) == ([.cases[].kind] | unique - ["type"])' "$work/judged" || {
    jq -r '(.kinds - [.cases[].kind] | .[] | "no case of \(.)"), ([.cases[].kind] - .kinds - ["type"] | .[] | "unknown: \(.)")' "$work/judged"
    return 1
  }
}

# refuses MODULE MESSAGE: one thing is refused, in these words among others.
refuses() {
  evaluate "$1" | jq -e --arg message "$2" '.failedAssertions | length == 1 and (.[0] | contains($message)) or error("\(.)")'
}
takes() { evaluate "$1" | jq -e '.failedAssertions == [] or error("\(.failedAssertions)")'; }

# systemd would not start it.
a_group_of_that_name_is_refused() {
  refuses '{ users.groups.mcp-hours = { }; }' 'users.groups has one of that name: rename the server or the group, or' &&
    takes '{ users.groups.mcp-hours = { }; users.users.alice.isNormalUser = true;
             services.metamcp.servers.hours.sandbox = { user = "alice"; group = "mcp-hours"; }; }'
}
# Of /run/user less is seen than of the homes.
a_hidden_runtime_directory_is_refused() {
  local cwd='services.metamcp.servers.hours.cwd = "/run/user/1000/hours";' home
  for home in hidden read-only; do
    refuses "{ $cwd services.metamcp.servers.hours.sandbox.home = \"$home\"; }" 'sandbox.home to "writable".' || return 1
  done
  takes "{ $cwd services.metamcp.servers.hours.sandbox.home = \"writable\"; }" &&
    takes "{ $cwd services.metamcp.servers.hours.sandbox.readOnlyPaths = [ \"/run/user/1000/\" ]; }"
}
# Only the URL, the unit and the key are options of the upstream itself.
an_upstream_is_told_by_what_there_is() {
  refuses '{ services.metamcp.servers.far.env.A = "1"; }' 'services.metamcp.servers.far.env has no effect' &&
    refuses '{ services.metamcp.servers.far.sandbox.preset = "none"; }' 'services.metamcp.servers.far.sandbox has no effect' &&
    refuses '{ services.metamcp.servers.far = { headers.A = "1"; credentials.A = "/run/a"; }; }' 'services.metamcp.servers.far.credentials.A is'
}

check "what is refused and warned about can be told" judge
check "a group that has the name systemd would make is refused like a user" a_group_of_that_name_is_refused
check "a working directory in /run/user is refused with a remedy that helps" a_hidden_runtime_directory_is_refused
check "what is said of an upstream is refused by the option that says it" an_upstream_is_told_by_what_there_is
check "secrets, fetched programs and browsers are told from what is none" guesses_are_right
check "nothing is refused or warned about without a case of it" every_kind_has_a_case
touch "$work/verdicts"
while IFS='|' read -r name told wrong said file; do
  if [ -z "$wrong" ]; then ok "$name $told"; else fail "$name $told" "$wrong"; fi
  if [ -n "$said" ]; then
    fail "$name is not told of where it is set right" "$said"
  else
    check "$name is not told of where it is set right" "$binary" check --no-files "$file"
  fi
done <"$work/verdicts"
