# shellcheck shell=bash
# Functions of the proof scripts, which run inside the booted system. Each check prints
# "ok NAME" or "FAIL NAME: DETAIL". `totals` prints the sums and sets the exit code.

passed=0 failed=0

ok() {
  passed=$((passed + 1))
  echo "ok $1"
}

fail() { # NAME DETAIL
  failed=$((failed + 1))
  echo "FAIL $1: $(tr '\n' ' ' <<<"$2" | cut -c1-600)"
}

totals() { # LABEL
  echo "$1: $passed passed, $failed failed"
  test $failed = 0
}

# matches NAME TEXT REGEX: checks that a line of TEXT matches REGEX.
matches() {
  if grep -Eq -- "$3" <<<"$2"; then ok "$1"; else fail "$1" "wanted $3, got $2"; fi
}

# lacks NAME TEXT REGEX: checks that TEXT is not empty and that no line of it matches REGEX.
lacks() {
  if [ -z "$2" ]; then
    fail "$1" "the text is empty"
  elif grep -Eq -- "$3" <<<"$2"; then fail "$1" "unwanted $3 in $2"; else ok "$1"; fi
}

# succeeds NAME COMMAND...: checks that the command succeeds.
succeeds() {
  local name=$1 detail
  shift
  if detail=$("$@" 2>&1); then ok "$name"; else fail "$name" "$detail"; fi
}

# eventually NAME COMMAND...: checks that the command succeeds within 15 s.
eventually() {
  local name=$1 deadline=$((SECONDS + 15)) detail=''
  shift
  while [ $SECONDS -lt $deadline ]; do
    if detail=$("$@" 2>&1); then
      ok "$name"
      return
    fi
    sleep 0.05 # between two attempts
  done
  fail "$name" "not within 15 s; last output: $detail"
}

property() { # UNIT PROPERTY
  systemctl show --property "$2" --value "$1"
}

main_pid() { property metamcp.service MainPID; }

systemd_version() { systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p'; }

# verdict FILE...: prints the messages of systemd-analyze verify about units, or "nothing".
# Its exit code does not help: it is 0 even if a unit has a problem.
verdict() {
  local messages
  messages=$(systemd-analyze verify --man=no "$@" 2>&1)
  if [ "$(systemd_version)" -lt 253 ]; then messages=$(grep -v 'Failed to parse service type, ignoring: notify-reload' <<<"$messages"); fi
  echo "${messages:-nothing}"
}

is_active() { [ "$(systemctl is-active "$1")" = active ]; }

# Prints the ids of all processes of the service, including the main process.
processes() {
  local group
  group=$(property metamcp.service ControlGroup)
  if [ -z "$group" ]; then return; fi
  cat "/sys/fs/cgroup/unified$group/cgroup.procs" 2>/dev/null ||
    cat "/sys/fs/cgroup$group/cgroup.procs" 2>/dev/null || :
}

journal() { # MATCH...
  journalctl --sync
  journalctl --boot --no-pager --output json --all "$@"
}

# Prints a cursor for journal --after-cursor.
end_of_journal() { journalctl --lines 0 --show-cursor | sed -n 's/^-- cursor: //p'; }

# post METHOD [PARAMS]: sends one request to the path $view, in the session $session
# unless that is empty. Prints the JSON-RPC answer, which may arrive as JSON or as a
# stream of events.
session=
view=/
endpoint=http://127.0.0.1:12011
post() {
  local body
  body=$(jq -cn --arg method "$1" --argjson params "${2:-"{}"}" '{ jsonrpc: "2.0", id: 1, $method, $params }')
  curl --silent --show-error --max-time 20 \
    --header 'Content-Type: application/json' \
    --header 'Accept: application/json, text/event-stream' \
    ${session:+--header "Mcp-Session-Id: $session"} \
    --data "$body" "$endpoint$view" | sed -n 's/^data: *//; /^{.*"id"/p'
}

initialize='{
  "protocolVersion": "2025-06-18",
  "capabilities": {},
  "clientInfo": { "name": "proof", "version": "1" }
}'

# Probes the liveness as an operator does, and prints the status code.
liveness() {
  curl --silent --show-error --max-time 20 --output /dev/null --write-out '%{http_code}' \
    --header 'Content-Type: application/json' \
    --header 'Accept: application/json, text/event-stream' \
    --data "$(jq -cn --argjson params "$initialize" '{ jsonrpc: "2.0", id: 1, method: "initialize", $params }')" \
    "$endpoint/"
}
# Creates a session and prints its id.
new_session() {
  curl --silent --show-error --max-time 20 --output /dev/null --dump-header - \
    --header 'Content-Type: application/json' \
    --header 'Accept: application/json, text/event-stream' \
    --data "$(jq -cn --argjson params "$initialize" '{ jsonrpc: "2.0", id: 1, method: "initialize", $params }')" \
    "$endpoint$view" | tr -d '\r' | sed -n 's/^mcp-session-id: //Ip'
}

readiness() { curl --silent --show-error --max-time 20 --output /dev/null --write-out '%{http_code}' "$endpoint/readyz"; }
is_ready() { [ "$(readiness)" = 200 ]; }

tools() { post tools/list | jq -r '.result.tools[].name'; }
has_tools_of() { tools | grep -q "^$1__"; }

# call TOOL [ARGUMENTS]: calls a tool. Prints the text of the result, or the whole answer
# if there is no text.
call() {
  local params
  params=$(jq -cn --arg name "$1" --argjson arguments "${2:-"{}"}" '{ $name, $arguments }')
  post tools/call "$params" | jq -r '.result.content[0].text // .'
}

# execute CODE: runs a script through the port, and prints its value as JSON, or the answer.
execute() {
  local view=/meta session
  session=$(new_session)
  post tools/call "$(jq -cn --arg code "$1" '{ name: "mcp_execute", arguments: { $code } }')" |
    jq -c '.result.structuredContent.value // .'
}
