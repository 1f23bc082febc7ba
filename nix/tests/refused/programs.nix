# What is refused or warned about: programs.
{ exact, server, ... }:
{
  "a package that npx fetches in any version" = {
    kind = "fetched-unpinned";
    refused = exact "files" {
      command = "npx";
      args = [
        "-y"
        "@modelcontextprotocol/server-filesystem"
      ];
    };
    message = "services.metamcp.settings.servers.files.command fetches @modelcontextprotocol/server-filesystem in whatever version is the newest, which makes it slow to start and different from one day to the next: say the version, as in \"@modelcontextprotocol/server-filesystem@1.2.3\"";
    accepted = exact "files" {
      command = "npx";
      args = [
        "-y"
        "@modelcontextprotocol/server-filesystem@2026.1.14"
      ];
    };
  };
  "a package that npx fetches in its newest version" = {
    kind = "fetched-unpinned";
    refused = exact "files" {
      command = "npx";
      args = [ "@modelcontextprotocol/server-filesystem@latest" ];
    };
    message = "say the version, as in \"@modelcontextprotocol/server-filesystem@1.2.3\"";
    accepted = exact "files" {
      command = "npx";
      args = [ "@modelcontextprotocol/server-filesystem@2026.1.14" ];
    };
  };
  "a package that uvx fetches in any version" = {
    kind = "fetched-unpinned";
    refused = server "fetch" {
      command = "/run/current-system/sw/bin/uvx";
      args = [ "mcp-server-fetch" ];
      isolation = "spawn";
    };
    message = "services.metamcp.servers.fetch.command fetches mcp-server-fetch in whatever version is the newest, which makes it slow to start and different from one day to the next: set `package` to one of nixpkgs";
    accepted = server "fetch" {
      command = "/run/current-system/sw/bin/uvx";
      args = [ "mcp-server-fetch==2026.1.14" ];
      isolation = "spawn";
    };
  };
  "an image without a version" = {
    kind = "fetched-unpinned";
    refused = exact "gitea" {
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
    message = "services.metamcp.settings.servers.gitea.command fetches docker.gitea.com:443/gitea-mcp-server:latest in whatever version is the newest, which makes it slow to start and different from one day to the next: say the version, as in \"docker.gitea.com:443/gitea-mcp-server:1.2.3\".";
    accepted = exact "gitea" {
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
  "a package that is fetched into a sandbox" = {
    kind = "fetched-in-a-sandbox";
    refused = server "files" {
      command = "npx";
      args = [
        "-y"
        "@modelcontextprotocol/server-filesystem@2026.1.14"
      ];
    };
    message = "services.metamcp.servers.files.command fetches @modelcontextprotocol/server-filesystem@2026.1.14 when it starts, and its sandbox leaves it nowhere to keep it: set `package` to one of nixpkgs in place of `command` and its `args`, or services.metamcp.servers.files.sandbox.state = true";
    accepted = server "files" {
      command = "npx";
      args = [
        "-y"
        "@modelcontextprotocol/server-filesystem@2026.1.14"
      ];
      sandbox.state = true;
    };
  };
  "a package that is fetched without a network" = {
    kind = "fetched-in-a-sandbox";
    refused = server "files" {
      command = "uvx";
      args = [ "mcp-server-fetch@2026.1.14" ];
      sandbox.preset = "no-network";
    };
    message = "its sandbox leaves it no network to do so: set `package` to one of nixpkgs in place of `command` and its `args`, or services.metamcp.servers.files.sandbox.network = true";
    accepted = server "files" {
      command = "mcp-server-fetch";
      sandbox.preset = "no-network";
    };
  };
  "a browser that is shared" = {
    kind = "browser-shared";
    refused = server "web" { command = "/opt/bin/playwright-mcp"; };
    message = "services.metamcp.servers.web drives a browser, and its clients would share the pages of it: set services.metamcp.servers.web.sharing = \"session\"";
    accepted = server "web" {
      command = "/opt/bin/playwright-mcp";
      sharing = "session";
    };
  };
  "a browser that is fetched and shared" = {
    kind = "browser-shared";
    refused = exact "web" {
      command = "npx";
      args = [ "chrome-devtools-mcp@1.2.3" ];
    };
    message = "services.metamcp.settings.servers.web drives a browser";
    accepted = exact "web" {
      command = "npx";
      args = [ "chrome-devtools-mcp@1.2.3" ];
      sharing = "exclusive";
    };
  };
}
