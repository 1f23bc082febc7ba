# An example that uses most options of the Home Manager module.
{ pkgs, ... }:
{
  services.metamcp = {
    enable = true;
    settings.service.log_level = "debug";
    # A demonstration server of the program itself.
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
      # metamcp itself, for the other clients that read this table.
      metamcp.url = "http://127.0.0.1:12011/";
      again.url = "http://LOCALHOST:12011?view=meta";
    };
  };
}
