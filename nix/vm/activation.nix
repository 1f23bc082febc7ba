# The first client starts the service, and the first call starts the server.
{ module }:
{
  name = "metamcp-activation";

  nodes.machine = import ./machine.nix { inherit module; };

  testScript = ''
    start_all()
    machine.wait_for_unit("sockets.target")
    machine.wait_for_unit("metamcp.socket")

    with subtest("nothing runs before the first client"):
        machine.fail("systemctl is-active metamcp.service")
        machine.fail("pgrep -x metamcp")

    with subtest("the first call is answered"):
        machine.succeed("call clock__whoami | grep '^process '")
        machine.succeed("systemctl is-active metamcp.service")

    with subtest("the server runs in its own unit, as its own user"):
        machine.succeed("systemctl list-units --plain --no-legend 'metamcp-server-clock@*.service' | grep running")
        users = machine.succeed("ps -C metamcp -o user:32=").split()
        assert len(users) == 2 and len(set(users)) == 2 and "root" not in users, users

    with subtest("a stopped service starts again for the next client"):
        machine.succeed("systemctl stop metamcp.service")
        # The unit of the server ends after the service.
        machine.wait_until_succeeds("! pgrep -x metamcp")
        machine.succeed("call clock__whoami")

    with subtest("an operator sees the server"):
        machine.succeed("metamcp status | grep clock")
  '';
}
