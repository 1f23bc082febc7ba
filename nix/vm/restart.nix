# Restarts under load: the sockets queue the connections of clients, and no call fails.
{ module }:
{
  name = "metamcp-restart";

  nodes.machine = import ./machine.nix { inherit module; };

  testScript = ''
    start_all()
    machine.wait_for_unit("metamcp.socket")
    machine.succeed("call clock__whoami")

    machine.succeed(": >/tmp/answers")
    # The background job must not keep the pipes of the test driver open.
    machine.succeed(
        "(code=0; seq 300 | xargs -P 8 -I {} call clock__whoami >/tmp/answers 2>/tmp/errors || code=$?;"
        " echo $code >/tmp/code) </dev/null >&2 &"
    )
    for restart in range(3):
        with subtest(f"restart {restart + 1} of 3 while calls are answered"):
            answered = int(machine.succeed("wc -l </tmp/answers"))
            machine.succeed("systemctl restart metamcp.service")
            machine.wait_until_succeeds(f"test $(wc -l </tmp/answers) -gt {answered} -o -e /tmp/code")

    with subtest("no call has failed"):
        machine.wait_until_succeeds("test -e /tmp/code")
        errors = machine.succeed("cat /tmp/errors")
        assert machine.succeed("cat /tmp/code").strip() == "0", errors
        assert machine.succeed("wc -l </tmp/answers").strip() == "300", errors
  '';
}
