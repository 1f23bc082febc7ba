# A secret is only in the environment of its server.
{ module }:
{
  name = "metamcp-secrets";

  nodes.machine =
    { config, ... }:
    {
      imports = [ (import ./machine.nix { inherit module; }) ];

      services.metamcp.servers = {
        keeper = {
          inherit (config.services.metamcp) package;
          args = [
            "demo-server"
            "scratch"
          ];
          credentials.TOKEN = "/run/secrets/token";
        };
        # This server cannot start, and metamcp reports its failure.
        broken = {
          command = "/run/nowhere";
          credentials.TOKEN = "/run/secrets/token";
        };
      };
    };

  testScript = ''
    start_all()
    machine.wait_for_unit("metamcp.socket")
    machine.succeed("install -d -m 700 /run/secrets")
    machine.succeed("umask 077; tr -d - </proc/sys/kernel/random/uuid >/run/secrets/token")

    # grep reads the secret from the file, so that no command line contains it.
    canary = "grep --fixed-strings --file=/run/secrets/token"

    machine.succeed("call clock__whoami")
    machine.succeed("call keeper__read '{\"key\":\"none\"}' || true")
    machine.execute("call broken__anything")

    with subtest("the server has the secret"):
        # grep fails for a process that has ended meanwhile.
        holders = machine.succeed(f"{canary} --files-with-matches /proc/[0-9]*/environ 2>/dev/null || true").split()
        assert len(holders) == 1, holders
        process = holders[0].split("/")[2]
        machine.succeed(f"tr '\\0' ' ' </proc/{process}/cmdline | grep 'demo-server scratch'")

    with subtest("no command line, unit, configuration file or journal contains the secret"):
        machine.fail(f"{canary} /proc/[0-9]*/cmdline")
        machine.fail(f"{canary} --dereference-recursive /etc/systemd/system /etc/metamcp")
        machine.succeed("systemctl reload metamcp.service")
        machine.fail(f"journalctl --no-pager --all --output=json | {canary}")

    with subtest("metamcp does not print the secret"):
        for command in ["status --json", "servers --json", "doctor", "check --effective /etc/metamcp/metamcp.toml"]:
            # Ignore the exit code: `doctor` reports the broken server.
            machine.fail(f"(metamcp {command} 2>&1 || true) | {canary}")
        machine.fail(f"curl --silent http://127.0.0.1:12011/status | {canary}")

    with subtest("only root can read the file that systemd passes to the server"):
        machine.succeed("ls /run/credentials/ | grep metamcp-server-keeper")
        machine.fail("setpriv --reuid 65534 --clear-groups cat /run/credentials/metamcp-server-keeper@*/TOKEN")
  '';
}
