# What systemd says of the units: nothing of how they are written, and of how
# exposed they are no more than 2.0 of 10.
{ module }:
{
  name = "metamcp-hardening";

  nodes.machine = import ./machine.nix { inherit module; };

  testScript = ''
    start_all()
    machine.wait_for_unit("metamcp.socket")
    machine.succeed("call clock__whoami")
    instance = machine.succeed(
        "systemctl list-units --plain --no-legend 'metamcp-server-clock@*.service' | cut -d' ' -f1"
    ).strip()

    with subtest("the units are understood"):
        told = machine.succeed(
            "systemd-analyze verify --man=no metamcp.service metamcp.socket metamcp-control.socket"
            " metamcp-server-clock.socket metamcp-server-clock@.service 2>&1 | grep metamcp || true"
        )
        assert told == "", told

    for unit in ["metamcp.service", instance]:
        with subtest(f"{unit} is hardly exposed"):
            machine.succeed(f"systemd-analyze security --no-pager --threshold=20 {unit}")
  '';
}
