# A configuration that uses what the module for Home Manager offers.
{ pkgs, ... }:
{
  services.metamcp = {
    enable = true;
    settings.service.log_level = "debug";
    # One that the program itself provides.
    servers.clock = {
      package = pkgs.metamcp;
      args = [
        "demo-server"
        "clock"
      ];
      start = "eager";
      extraPackages = [ pkgs.coreutils ];
    };
    mcpIntegration.exclude = [ "elsewhere" ];
    claudeCode.enable = true;
  };

  programs.mcp = {
    enable = true;
    servers = {
      shell = {
        command = "/bin/sh";
        args = [
          "-c"
          "echo \"token: $TOKEN\" >>greeting; exec metamcp demo-server scratch"
        ];
        env = {
          GREETING = "good morning";
          TOKEN.file = "/home/ada/token";
        };
      };
      local = {
        url = "http://127.0.0.1:12009/mcp";
        headers.X-Key = "{env:UPSTREAM_KEY}";
      };
      elsewhere.url = "https://mcp.example.org/mcp";
      unused = {
        command = "unused-mcp";
        enabled = false;
      };
      # For the other clients that read this table.
      metamcp.url = "http://127.0.0.1:12011/";
      again.url = "http://LOCALHOST:12011?view=meta";
    };
  };
}
