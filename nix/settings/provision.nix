# [provision]: servers that clients may have added.
{
  format,
  lib,
  # For the service of a user, and not of the host.
  forUser,
  # What [provision] says in the end.
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

  server = import ../server.nix { inherit forUser format lib; };
  provisionable = types.submodule (
    server
    // {
      options = server.options // {
        start = mkOption {
          type = types.enum [ "lazy" ];
          default = "lazy";
          description = "When to connect: when it is added, so that there is no choice.";
        };

        namespace = mkOption {
          type = types.nullOr namespace;
          default = null;
          example = "internal/github";
          description = ''
            Whose server it is, for
            {option}`services.metamcp.settings.provision.trusted`. One of
            `null` is suggested and never started.
          '';
        };

        description = mkOption {
          type = textUpTo 1024;
          example = "Issues, pull requests and reviews on GitHub.";
          description = "What the server is for; it is found by these words.";
        };

        keywords = mkOption {
          type = listBetween 0 32 types.str;
          default = [ ];
          example = [
            "repository"
            "merge"
          ];
          description = "Words by which it is found besides.";
        };
      };
    }
  );
in
{
  enabled = mkOption {
    type = types.bool;
    default = provision.servers != { } || provision.registry != null;
    defaultText = lib.literalMD "whether servers or a registry are declared for it";
    example = false;
    description = ''
      Whether clients may have servers added that are declared in
      {option}`services.metamcp.settings.provision.servers`.
    '';
  };
  min_confidence = mkOption {
    type = types.numbers.between 0 1;
    default = 0.6;
    example = 0.8;
    description = ''
      How sure it must be, from 0 to 1, that a server is the one that
      was meant, for it to be started.
    '';
  };
  trusted = mkOption {
    type = listBetween 0 256 trust;
    default = [ ];
    example = [
      "@modelcontextprotocol/*"
      "internal/github"
    ];
    description = "Namespaces of servers that may be started, or all below one.";
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
      MCP servers that are added when a client asks for what they do,
      by name. No other program is ever run at a client's request.
    '';
  };
  registry = mkOption {
    type = types.nullOr (
      types.submodule {
        options = {
          url = mkOption {
            type = url;
            example = "https://registry.example.org";
            description = "What stands before `/v0/servers`.";
          };
          ttl = mkOption {
            type = duration;
            default = "24h";
            example = "1h";
            description = "For how long an answer is good.";
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
      Registry of MCP servers to look for others in, which are
      suggested and never started; none is asked if `null`.
    '';
  };
}
