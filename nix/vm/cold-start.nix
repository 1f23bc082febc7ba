# Ten clients connect at once, while neither the service nor the upstream runs. metamcp
# opens one session with the upstream, and answers all clients in it.
{ module }:
{
  name = "metamcp-cold-start";

  nodes.machine =
    { lib, pkgs, ... }:
    {
      imports = [ (import ./machine.nix { inherit module; }) ];

      services.metamcp.upstream = {
        url = "http://127.0.0.1:12009/mcp";
        unit = "upstream.service";
        apiKeyFile = "/run/upstream-key";
      };

      # systemd considers the unit started before the upstream listens.
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

    with subtest("the upstream got one initialize request"):
        handshakes = machine.succeed("curl --silent http://127.0.0.1:12009/handshakes").strip()
        assert handshakes == "1", handshakes

    with subtest("a restart of the upstream costs one initialize request and no call"):
        machine.succeed("systemctl restart upstream.service")
        machine.succeed("seq 10 | xargs -P 10 -I {} call session")
        handshakes = machine.succeed("curl --silent http://127.0.0.1:12009/handshakes").strip()
        assert handshakes == "1", handshakes
  '';
}
