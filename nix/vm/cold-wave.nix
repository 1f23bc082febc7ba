# Ten clients at once, none of what they need is running yet: one session is made
# with the upstream, and all of them are answered in it.
{ module }:
{
  name = "metamcp-cold-wave";

  nodes.machine =
    { lib, pkgs, ... }:
    {
      imports = [ (import ./machine.nix { inherit module; }) ];

      services.metamcp.upstream = {
        url = "http://127.0.0.1:12009/mcp";
        unit = "upstream.service";
        apiKeyFile = "/run/upstream-key";
      };

      # It says that it is ready long before it is.
      systemd.services.upstream.serviceConfig = {
        DynamicUser = true;
        ExecStart = "${lib.getExe pkgs.python3} ${pkgs.writeText "upstream.py" (lib.readFile ./upstream.py)}";
      };
      systemd.tmpfiles.rules = [ "f /run/upstream-key 0400 root root - upstream-key" ];
    };

  testScript = ''
    start_all()
    machine.wait_for_unit("metamcp.service")
    machine.succeed("systemctl stop metamcp.service upstream.service")

    with subtest("ten clients are answered, in the same session"):
        sessions = machine.succeed("seq 10 | xargs -P 10 -I {} call session").split()
        assert len(sessions) == 10, sessions
        assert len(set(sessions)) == 1, sessions

    with subtest("the upstream was greeted once"):
        greetings = machine.succeed("curl --silent http://127.0.0.1:12009/greetings").strip()
        assert greetings == "1", greetings

    with subtest("an upstream that is restarted costs one greeting more, and no call"):
        machine.succeed("systemctl restart upstream.service")
        machine.succeed("seq 10 | xargs -P 10 -I {} call session")
        greetings = machine.succeed("curl --silent http://127.0.0.1:12009/greetings").strip()
        assert greetings == "1", greetings
  '';
}
