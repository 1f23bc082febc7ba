# systemd-analyze finds no mistake in the units, and an exposure of at most 2.0 of 10.
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

    with subtest("systemd finds no mistake in the units"):
        complaints = machine.succeed(
            "systemd-analyze verify --man=no metamcp.service metamcp.socket metamcp-control.socket"
            " metamcp-server-clock.socket metamcp-server-clock@.service 2>&1 | grep metamcp || true"
        )
        assert complaints == "", complaints

    for unit in ["metamcp.service", instance]:
        with subtest(f"the exposure of {unit} is low"):
            machine.succeed(f"systemd-analyze security --no-pager --threshold=20 {unit}")
  '';
}
