# [provision]: the servers that metamcp may add on request of a client.
{
  format,
  lib,
  # True for the Home Manager module, which is for the service of a user.
  forUser,
  # The values of [provision], after all definitions are merged.
  provision,
}:
let
  inherit (lib) mkOption types;
  inherit (import ../types.nix { inherit lib; })
    duration
    listBetween
    namespace
    textUpTo
    trust
    url
    ;

  server = import ../server-table.nix { inherit forUser format lib; };
  provisionable = types.submodule (
    server
    // {
      options = server.options // {
        start = mkOption {
          type = types.enum [ "lazy" ];
          default = "lazy";
          description = "When metamcp connects the server. It connects such a server when it adds it, so that there is no other value.";
        };

        namespace = mkOption {
          type = types.nullOr namespace;
          default = null;
          example = "internal/github";
          description = ''
            The namespace, which names the owner of the server.
            {option}`services.metamcp.settings.provision.trusted` refers to
            it. If `null`, metamcp suggests the server and never starts it.
          '';
        };

        description = mkOption {
          type = textUpTo 1024;
          example = "Issues, pull requests and reviews on GitHub.";
          description = "The purpose of the server. metamcp finds it by these words.";
        };

        keywords = mkOption {
          type = listBetween 0 32 types.str;
          default = [ ];
          example = [
            "repository"
            "merge"
          ];
          description = "Further words by which metamcp finds the server.";
        };
      };
    }
  );
in
{
  enabled = mkOption {
    type = types.bool;
    default = provision.servers != { } || provision.registry != null;
    defaultText = lib.literalMD "`true` if `servers` or `registry` is set";
    example = false;
    description = ''
      Whether metamcp may add servers from
      {option}`services.metamcp.settings.provision.servers` on request
      of a client.
    '';
  };
  min_confidence = mkOption {
    type = types.numbers.between 0 1;
    default = 0.6;
    example = 0.8;
    description = ''
      The confidence, from 0 to 1, that a server is the one that the
      client asked for. metamcp starts no server below it.
    '';
  };
  trusted = mkOption {
    type = listBetween 0 256 trust;
    default = [ ];
    example = [
      "@modelcontextprotocol/*"
      "internal/github"
    ];
    description = "The namespaces from which metamcp may start servers: one (`internal/github`), or all below one (`@modelcontextprotocol/*`).";
  };
  servers = mkOption {
    type = types.attrsOf provisionable;
    default = { };
    example = lib.literalExpression ''
      {
        github = {
          namespace = "internal/github";
          description = "Issues, pull requests and reviews on GitHub.";
          command = lib.getExe pkgs.github-mcp-server;
          args = [ "stdio" ];
        };
      }
    '';
    description = ''
      The servers that metamcp may add when a client asks for what they
      do, by name. metamcp never runs any other program on request of a
      client.
    '';
  };
  registry = mkOption {
    type = types.nullOr (
      types.submodule {
        options = {
          url = mkOption {
            type = url;
            example = "https://registry.example.org";
            description = "The part of its URL before `/v0/servers`.";
          };
          ttl = mkOption {
            type = duration;
            default = "24h";
            example = "1h";
            description = "The time that its answers stay valid.";
          };
        };
      }
    );
    default = null;
    example = {
      url = "https://registry.example.org";
      ttl = "1h";
    };
    description = ''
      A registry of MCP servers in which metamcp looks for others. It
      suggests them and never starts them. If `null`, metamcp asks no
      registry.
    '';
  };
}
