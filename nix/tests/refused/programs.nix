# Cases of assertions and warnings: programs.
{ settingsServer, server, ... }:
{
  "a package that npx downloads without a version" = {
    kind = "unpinned-download";
    refused = settingsServer "files" {
      command = "npx";
      args = [
        "-y"
        "@modelcontextprotocol/server-filesystem"
      ];
    };
    message = "services.metamcp.settings.servers.files.command downloads @modelcontextprotocol/server-filesystem without a pinned version, so that it starts slowly and may change with every start: pin the version, as in \"@modelcontextprotocol/server-filesystem@1.2.3\"";
    accepted = settingsServer "files" {
      command = "npx";
      args = [
        "-y"
        "@modelcontextprotocol/server-filesystem@2026.1.14"
      ];
    };
  };
  "a package that npx downloads in its latest version" = {
    kind = "unpinned-download";
    refused = settingsServer "files" {
      command = "npx";
      args = [ "@modelcontextprotocol/server-filesystem@latest" ];
    };
    message = "pin the version, as in \"@modelcontextprotocol/server-filesystem@1.2.3\"";
    accepted = settingsServer "files" {
      command = "npx";
      args = [ "@modelcontextprotocol/server-filesystem@2026.1.14" ];
    };
  };
  "a package that uvx downloads without a version" = {
    kind = "unpinned-download";
    refused = server "fetch" {
      command = "/run/current-system/sw/bin/uvx";
      args = [ "mcp-server-fetch" ];
      isolation = "spawn";
    };
    message = "services.metamcp.servers.fetch.command downloads mcp-server-fetch without a pinned version, so that it starts slowly and may change with every start: set `package` to a package of nixpkgs";
    accepted = server "fetch" {
      command = "/run/current-system/sw/bin/uvx";
      args = [ "mcp-server-fetch==2026.1.14" ];
      isolation = "spawn";
    };
  };
  "an image without a version" = {
    kind = "unpinned-download";
    refused = settingsServer "gitea" {
      command = "docker";
      args = [
        "run"
        "-i"
        "--rm"
        "-e"
        "GITEA_HOST"
        "docker.gitea.com:443/gitea-mcp-server:latest"
      ];
    };
    message = "services.metamcp.settings.servers.gitea.command downloads docker.gitea.com:443/gitea-mcp-server:latest without a pinned version, so that it starts slowly and may change with every start: pin the version, as in \"docker.gitea.com:443/gitea-mcp-server:1.2.3\".";
    accepted = settingsServer "gitea" {
      command = "docker";
      args = [
        "run"
        "-i"
        "--rm"
        "-e"
        "GITEA_HOST"
        "docker.gitea.com/gitea-mcp-server:1.2.3"
      ];
    };
  };
  "a package that is downloaded into a sandbox without state" = {
    kind = "download-in-a-sandbox";
    refused = server "files" {
      command = "npx";
      args = [
        "-y"
        "@modelcontextprotocol/server-filesystem@2026.1.14"
      ];
    };
    message = "services.metamcp.servers.files.command downloads @modelcontextprotocol/server-filesystem@2026.1.14 when it starts, but its sandbox has no directory to keep it: set `package` to a package of nixpkgs instead of `command` and `args`, or set services.metamcp.servers.files.sandbox.state = true";
    accepted = server "files" {
      command = "npx";
      args = [
        "-y"
        "@modelcontextprotocol/server-filesystem@2026.1.14"
      ];
      sandbox.state = true;
    };
  };
  "a package that is downloaded without a network" = {
    kind = "download-in-a-sandbox";
    refused = server "files" {
      command = "uvx";
      args = [ "mcp-server-fetch@2026.1.14" ];
      sandbox.preset = "no-network";
    };
    message = "its sandbox has no network: set `package` to a package of nixpkgs instead of `command` and `args`, or set services.metamcp.servers.files.sandbox.network = true";
    accepted = server "files" {
      command = "mcp-server-fetch";
      sandbox.preset = "no-network";
    };
  };
  "a browser that is shared" = {
    kind = "shared-browser";
    refused = server "web" { command = "/opt/bin/playwright-mcp"; };
    message = "services.metamcp.servers.web drives a browser, and all clients would share its pages: set services.metamcp.servers.web.sharing = \"session\"";
    accepted = server "web" {
      command = "/opt/bin/playwright-mcp";
      sharing = "session";
    };
  };
  "a browser that is downloaded and shared" = {
    kind = "shared-browser";
    refused = settingsServer "web" {
      command = "npx";
      args = [ "chrome-devtools-mcp@1.2.3" ];
    };
    message = "services.metamcp.settings.servers.web drives a browser";
    accepted = settingsServer "web" {
      command = "npx";
      args = [ "chrome-devtools-mcp@1.2.3" ];
      sharing = "exclusive";
    };
  };
}
