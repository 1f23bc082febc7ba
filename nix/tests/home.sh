# shellcheck shell=bash
# The part of nix/tests/run for the Home Manager module. OUT_DIR receives home/, the files
# of nix/tests/home-example.nix as Home Manager would link them, and opt/, the programs
# that it would build.
# shellcheck disable=SC2154 # set by nix/tests/run: binary here lib out package project work

# evaluate_home MODULE...: evaluates the example with further modules, as JSON.
evaluate_home() {
  nix-instantiate --eval --strict --json --read-write-mode --expr "
    import $here/stub/eval-home.nix {
      lib = import $lib;
      modules = [ $project/nix/home-module.nix $here/home-example.nix $* ];
      package = \"$package\";
    }"
}

home_evaluates() {
  evaluate_home >"$work/home.json" && jq -e '.failedAssertions == [] and .warnings == []' "$work/home.json"
}

write_home() {
  rm -rf "${out:?}"/{home,opt}
  write_files "$work/home.json" "$out"
}

# home_gives MODULE FILTER: the jq filter is true for the evaluation with the module.
home_gives() {
  evaluate_home "$1" >"$work/home-evaluation.json" && jq -e "$2" "$work/home-evaluation.json"
}
home_toml() { jq -j '.files["home/ada/.config/metamcp/metamcp.toml"]' "$1"; }

# The generated units contain every line of the package's units that the module does not
# change.
home_units_are_those_of_the_package() {
  local unit key
  for unit in metamcp.service metamcp.socket metamcp-control.socket; do
    key=$(grep -v '^#' "$project/systemd/user/$unit" | grep '=' | grep -vE '^(Also|ExecStart|WantedBy)=')
    grep -Fxf <(printf '%s\n' "$key") "$out/home/ada/.config/systemd/user/$unit" | sort |
      diff <(sort <<<"$key") - || return 1
  done
}

servers_of_other_clients_are_served() {
  home_toml "$work/home.json" >"$work/home.toml"
  grep -A9 -Fx '[servers.shell]' "$work/home.toml" | grep -Fx 'command = "/bin/sh"' || return 1
  grep -Fx 'TOKEN = "credential:shell.TOKEN"' "$work/home.toml" || return 1
  grep -Fx 'LoadCredential=shell.TOKEN:/home/ada/token' "$out/home/ada/.config/systemd/user/metamcp.service" || return 1
  grep -Fx 'X-Key = "env:UPSTREAM_KEY"' "$work/home.toml" || return 1
  ! grep -E 'unused|elsewhere|servers\.(metamcp|again)' "$work/home.toml"
}

home_servers_take_precedence() {
  home_gives '{ services.metamcp.servers.shell.args = [ "-c" "exec other-mcp" ]; }' \
    '.files["home/ada/.config/metamcp/metamcp.toml"] | contains("exec other-mcp") and contains("good morning")'
}

# The package does not get the arguments of the replaced command.
home_package_replaces_a_command() {
  home_gives '({ pkgs, ... }: { services.metamcp.servers.shell.package = pkgs.git; })' \
    '.files["home/ada/.config/metamcp/metamcp.toml"]
     | contains("command = \"/usr/bin/git\"") and (contains("exec metamcp demo-server scratch") | not)'
}

home_credential_replaces_a_value() {
  home_gives '{ services.metamcp.servers = {
      shell.credentials.GREETING = "/home/ada/greeting";
      local.credentials.X-Key = "/home/ada/key";
    }; }' '.failedAssertions == [] and (.files["home/ada/.config/metamcp/metamcp.toml"]
      | contains("credential:shell.GREETING") and contains("credential:local.X-Key"))'
}

home_transport_replaces_another() {
  home_gives '{
    programs.mcp.servers = {
      a = { command = "x"; args = [ "y" ]; env = { MODE = "a{env:MODE}"; TOKEN.file = "/home/ada/token"; }; };
      b = { url = "http://127.0.0.1:9/mcp"; headers.X-Mode = "b"; };
    };
    services.metamcp.servers = {
      a.url = "http://127.0.0.1:8/mcp";
      b.command = "b-mcp";
    };
  }' '.failedAssertions == [] and .warnings == [] and (.files["home/ada/.config/metamcp/metamcp.toml"]
        | contains("http://127.0.0.1:8/mcp") and contains("b-mcp") and (contains(":9/mcp") | not))'
}

home_integration_can_be_turned_off() {
  home_gives '{ services.metamcp.mcpIntegration.enable = false; }' \
    '.files["home/ada/.config/metamcp/metamcp.toml"] | contains("servers.clock") and (contains("servers.shell") | not)'
}

# home_warns NAME SERVER MESSAGE: this server in programs.mcp.servers causes exactly one
# warning, which contains MESSAGE.
home_warns() {
  check "home: $1 causes a warning with a remedy" home_gives "{ programs.mcp.servers.$2; }" \
    ".warnings | length == 1 and (.[0] | contains(\"$3\"))"
}

home_warning_is_silenced() {
  home_gives '{
    programs.mcp.servers = {
      a.url = "unix:///run/mcp.sock";
      b.url = "unix:///run/mcp.sock";
      c = { url = "http://127.0.0.1:9/mcp"; headers.Authorization = "Bearer {env:TOKEN}"; };
    };
    services.metamcp.servers = {
      b.url = "http://127.0.0.1:8/mcp";
      c.credentials.Authorization = "/home/ada/authorization";
    };
    services.metamcp.mcpIntegration.exclude = [ "a" ];
  }' '.warnings == [] and (.files["home/ada/.config/metamcp/metamcp.toml"]
        | contains("http://127.0.0.1:8/mcp") and contains("credential:c.Authorization"))'
}

# home_refuses NAME MODULE MESSAGE
home_refuses() {
  local messages
  if evaluate_home "{ services.metamcp = $2; }" >"$work/home-evaluation.json" 2>"$work/error"; then
    messages=$(jq -r '.failedAssertions[]' "$work/home-evaluation.json")
  else
    messages=$(cat "$work/error")
  fi
  case $messages in
    *"$3"*) ok "home: $1 is refused" ;;
    *) fail "home: $1 is refused" "wanted: $3; got: $messages" ;;
  esac
}

home_claude_code_is_configured() {
  jq -e '.files["home/ada/.config/metamcp/mcp.json"] | fromjson
         | .mcpServers.metamcp == { type: "http", url: "http://127.0.0.1:12011/" }' "$work/home.json" || return 1
  home_gives '{ programs.claude-code.enable = true; }' \
    '.claudeCode.metamcp.url == "http://127.0.0.1:12011/" and (.files | has("home/ada/.config/metamcp/mcp.json") | not)'
}

home_percent_signs_are_escaped() {
  home_gives '{ services.metamcp.credentials.shared = "/home/ada/100%u"; services.metamcp.settings.listen.control = "/home/ada/100%u.sock"; }' '
    (.files["home/ada/.config/systemd/user/metamcp.service"] | contains("\nLoadCredential=shared:/home/ada/100%%u\n")) and
    (.files["home/ada/.config/systemd/user/metamcp-control.socket"] | contains("\nListenStream=/home/ada/100%%u.sock\n"))'
}

home_starts_nothing_twice() {
  home_gives '{ programs.claude-code = { enable = true; enableMcpIntegration = true; }; }' \
    '.warnings | length == 1 and (.[0] | test("start the servers .* itself.*set it to false"))'
}

home_sockets_follow_settings() {
  home_gives '{ services.metamcp.settings.listen = { http = "[::1]:12211"; control = "/home/ada/control.sock"; }; }' '
    (.files["home/ada/.config/systemd/user/metamcp.socket"] | contains("\nListenStream=[::1]:12211\n")) and
    (.files["home/ada/.config/systemd/user/metamcp-control.socket"] | contains("\nListenStream=/home/ada/control.sock\n")) and
    (.files["home/ada/.config/systemd/user/metamcp.service"] | contains("X-Restart-Triggers=[::1]:12211\n")) and
    (.files["home/ada/.profile"] | contains("METAMCP_SOCKET=\"/home/ada/control.sock\""))'
}

home_changes_only_the_reload_trigger() {
  local unit='.files["home/ada/.config/systemd/user/metamcp.service"]'
  home_gives '{ services.metamcp.settings.pool.size = 30; }' . || return 1
  diff <(jq -r "$unit" "$work/home.json") <(jq -r "$unit" "$work/home-evaluation.json") >"$work/difference" && return 1
  ! grep '^[<>]' "$work/difference" | grep -v X-Reload-Triggers=
}

check "home: the example evaluates without a failed assertion or a warning" home_evaluates
check "home: the files of the example are written as Home Manager would link them" write_home
check "home: metamcp accepts the generated configuration" "$binary" check --no-files "$out/home/ada/.config/metamcp/metamcp.toml"
check "home: the units are those of the package" home_units_are_those_of_the_package
check "home: an eager server starts the service with the session" \
  test -L "$out/home/ada/.config/systemd/user/default.target.wants/metamcp.service"
check "home: with only lazy servers, only the sockets start with the session" \
  home_gives '({ lib, ... }: { services.metamcp.servers.clock.start = lib.mkForce "lazy"; })' \
  '.links | has("home/ada/.config/systemd/user/default.target.wants/metamcp.service") | not'
check "home: metamcp serves the servers that are declared for other clients" servers_of_other_clients_are_served
check "home: services.metamcp.servers takes precedence over programs.mcp.servers" home_servers_take_precedence
check "home: a package replaces the command line of a server in programs.mcp.servers" home_package_replaces_a_command
check "home: a credential replaces a value of a server in programs.mcp.servers" home_credential_replaces_a_value
check "home: another transport replaces that of a server in programs.mcp.servers" home_transport_replaces_another
check "home: the integration of programs.mcp.servers can be turned off" home_integration_can_be_turned_off
check "home: a server on another host is taken over" home_gives \
  '{ programs.mcp.servers.far = { url = "https://mcp.example.org/mcp"; headers.X-Team = "shop"; }; }' \
  '.warnings == [] and (.files["home/ada/.config/metamcp/metamcp.toml"] | contains("url = \"https://mcp.example.org/mcp\""))'
home_warns "a server with a reference in its address" 'far.url = "http://{env:HOST}/mcp"' \
  'begins with http:// or https:// and contains no reference'
home_warns "a server with a reference in its command line" 'far = { command = "x"; args = [ "{env:TOKEN}" ]; }' \
  'reads the value from a variable'
home_warns "a server with an invalid name" '"far away".command = "x"' 'rename it to 1 to 40 letters'
home_warns "a value with a reference and other text" 'far = { url = "http://127.0.0.1:9/mcp"; headers.Authorization = "Bearer {env:TOKEN}"; }' \
  'services.metamcp.servers.far.credentials.Authorization'
home_warns "a literal value that looks like a reference" 'far = { command = "x"; env.MODE = "env:y"; }' \
  'services.metamcp.servers.far.credentials.MODE'
check "home: each remedy removes its warning" home_warning_is_silenced
check "home: Claude Code gets metamcp as a server, from its own module if that is enabled" home_claude_code_is_configured
check "home: servers that Claude Code would start too cause a warning" home_starts_nothing_twice
check "home: the sockets follow settings.listen" home_sockets_follow_settings
check "home: percent signs in paths are escaped" home_percent_signs_are_escaped
check "home: a changed setting changes only the reload trigger of the unit" home_changes_only_the_reload_trigger
home_refuses "a sandbox, which does not exist for a user" '{ servers.clock.sandbox.preset = "strict"; }' \
  "option \`services.metamcp.servers.clock.sandbox' does not exist"
home_refuses "a mistyped key of a server" '{ servers.clock.argz = [ ]; }' \
  "option \`services.metamcp.servers.clock.argz' does not exist"
home_refuses "a server with two transports" '{ servers.clock.url = "http://127.0.0.1:9/mcp"; }' \
  'services.metamcp.servers.clock needs exactly one of command, url and socket'
home_refuses "a secret in the store" '{ servers.clock.credentials.TOKEN = ./home-example.nix; }' \
  'services.metamcp.servers.clock.credentials.TOKEN would put the secret into the Nix store'
home_refuses "a reference to an undeclared credential" '{ servers.clock.env.TOKEN = "credential:nothing"; }' \
  'refers to the credential nothing, which does not exist'
home_refuses "a server that is this service" '{ servers.me.url = "http://localhost:12011/"; }' \
  'services.metamcp.servers.me.url is http://localhost:12011/, where metamcp itself listens'
