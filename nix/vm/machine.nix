# The common configuration of the machines in the VM tests: metamcp with one server, and
# the client `call` for the test scripts.
{ module }:
{ config, pkgs, ... }:
{
  imports = [ module ];

  services.metamcp = {
    enable = true;
    servers.clock = {
      inherit (config.services.metamcp) package;
      args = [
        "demo-server"
        "clock"
      ];
    };
  };

  environment.systemPackages = [
    (pkgs.writeShellApplication {
      # call TOOL [ARGUMENTS]: prints the text of the result.
      name = "call";
      runtimeInputs = [
        pkgs.curl
        pkgs.jq
      ];
      text = ''
        jq -cn --arg name "$1" --argjson arguments "''${2:-"{}"}" '{
          jsonrpc: "2.0", id: 1, method: "tools/call", params: { $name, $arguments }
        }' |
          curl --silent --show-error --fail --max-time 60 --data @- \
            --header 'Content-Type: application/json' \
            --header 'Accept: application/json, text/event-stream' \
            http://127.0.0.1:12011/ |
          sed -n 's/^data: *//; /^{.*"id"/p' |
          jq -er '.result.content[0].text'
      '';
    })
  ];
}
