# shellcheck shell=bash
# Functions for the tests that evaluate Nix: a private store, checks, and a function that
# writes the system that an evaluation describes.

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# The path of the package in a written system.
package=/opt/metamcp

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# A private store, so that the tests neither need nor change the store of the machine.
export NIX_STORE_DIR=$work/store NIX_STATE_DIR=$work/state NIX_LOG_DIR=$work/log
export NIX_LOCALSTATE_DIR=$work/state NIX_CONF_DIR=$work/conf HOME=$work/home
export NIX_CONFIG='build-users-group =
experimental-features = nix-command flakes
flake-registry ='
mkdir -p "$HOME"

passed=0 failed=0
ok() {
  passed=$((passed + 1))
  echo "ok $1"
}
fail() { # NAME DETAIL
  failed=$((failed + 1))
  echo "FAIL $1: $(tr '\n' ' ' <<<"$2" | cut -c1-600)"
}
# check NAME COMMAND...: checks that the command succeeds. On failure, its output is the
# detail.
check() {
  local name=$1
  shift
  if "$@" >"$work/detail" 2>&1; then ok "$name"; else fail "$name" "$(cat "$work/detail")"; fi
}

totals() { # LABEL
  echo "$1: $passed passed, $failed failed"
  test "$failed" = 0
}

# write_files SYSTEM DIR: writes the files, programs and links of the evaluation in the
# file SYSTEM below DIR.
write_files() {
  local system=$1 out=$2 programs='.scripts + .commands + .programs' path target
  jq -r ".files + $programs | keys[]" "$system" | while read -r path; do
    mkdir -p "$(dirname "$out/$path")"
    jq -j --arg path "$path" "(.files + $programs)[\$path]" "$system" >"$out/$path"
  done
  jq -r "$programs | keys[]" "$system" | while read -r path; do chmod 755 "$out/$path"; done
  jq -r '.links | to_entries[] | "\(.key) \(.value)"' "$system" | while read -r path target; do
    mkdir -p "$(dirname "$out/$path")"
    ln -s "$target" "$out/$path"
  done
}

# write_system SYSTEM DIR: writes the output of stub/eval.nix or stub/eval-vm.nix, in the
# file SYSTEM, to DIR as NixOS would install it, together with the units of the package.
write_system() {
  local system=$1 out=$2 unit
  rm -rf "${out:?}/etc"
  mkdir -p "$out/etc/systemd/system"
  for unit in "$project"/systemd/*.service "$project"/systemd/*.socket; do
    sed "s|/usr/bin/metamcp|$package/bin/metamcp|" "$unit" >"$out/etc/systemd/system/${unit##*/}"
  done
  write_files "$system" "$out"
}
