# A switch to another configuration restarts or reloads only what has changed.
{ module }:
{
  name = "metamcp-reload";

  nodes.machine =
    { config, lib, ... }:
    let
      demo = name: {
        inherit (config.services.metamcp) package;
        args = [
          "demo-server"
          name
        ];
      };
    in
    {
      imports = [ (import ./machine.nix { inherit module; }) ];
      services.metamcp.servers.store = demo "scratch";
      # Test machines have no switch-to-configuration by default.
      system.switch.enable = true;

      specialisation = {
        setting.configuration.services.metamcp.settings.pool.size = 30;
        server.configuration.services.metamcp.servers = {
          store.args = lib.mkForce [
            "demo-server"
            "patience"
          ];
          added = demo "clock";
        };
      };
    };

  testScript =
    { nodes, ... }:
    let
      switch =
        name:
        "${nodes.machine.system.build.toplevel}${
          if name == "" then "" else "/specialisation/${name}"
        }/bin/switch-to-configuration test";
    in
    ''
      start_all()
      machine.wait_for_unit("multi-user.target")


      def main_pid():
          return machine.succeed("systemctl show --property=MainPID --value metamcp.service")


      def clock():
          return machine.succeed("call clock__whoami").split()[1]


      before, process = clock(), main_pid()
      cursor = machine.succeed("journalctl --lines=0 --show-cursor | sed -n 's/^-- cursor: //p'").strip()

      with subtest("the same configuration changes nothing"):
          machine.succeed("${switch ""}")
          assert (clock(), main_pid()) == (before, process)
          machine.fail(f"journalctl --after-cursor='{cursor}' --unit=metamcp.service --grep='Reload'")

      with subtest("a changed setting reloads the service, and the servers keep running"):
          machine.succeed("${switch "setting"}")
          assert (clock(), main_pid()) == (before, process)
          machine.succeed("grep 'size = 30' /etc/metamcp/metamcp.toml")
          machine.succeed(f"journalctl --after-cursor='{cursor}' --unit=metamcp.service --grep='Reloaded'")

      with subtest("the next call reaches the changed server, and the added server answers"):
          machine.succeed("${switch "server"}")
          assert (clock(), main_pid()) == (before, process)
          machine.wait_until_succeeds("metamcp tools store | grep count")
          machine.succeed("call added__whoami")

      with subtest("the socket of a removed server is removed too"):
          machine.succeed("${switch ""}")
          machine.fail("call added__whoami")
          machine.fail("test -e /run/metamcp-servers/added.sock")
          assert (clock(), main_pid()) == (before, process)
    '';
}
