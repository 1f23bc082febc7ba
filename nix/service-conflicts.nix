# Services of the NixOS host that use the unit name or the directories of metamcp:
# the messages of the assertions, by kind.
{ lib }:
{
  # services.metamcp.
  cfg,
  # systemd.services.
  services,
  # Its definitions, as in options.systemd.services.definitionsWithLocations.
  definitions,
}:
let
  # The files of other modules that define the unit.
  own = map toString [
    ./module.nix
    ./upstream.nix
  ];
  unknownFile = "<unknown-file>";
  files = lib.filter (file: !lib.elem file (own ++ [ unknownFile ])) (
    lib.unique (
      map ({ file, ... }: toString file) (lib.filter ({ value, ... }: value ? metamcp) definitions)
    )
  );

  programs = lib.toList (services.metamcp.serviceConfig.ExecStart or [ ]);
  # The package's unit has the ExecStart=, and the module adds none. An empty entry
  # removes the package's, so the definition changes metamcp's own unit.
  isTaken = programs != [ ] && !lib.elem "" programs;

  # The names of all other services for which `isFound` is true.
  others =
    isFound:
    lib.attrNames (lib.filterAttrs (_: service: isFound service) (removeAttrs services [ "metamcp" ]));

  # The directories that metamcp uses, by the directive that creates each. systemd
  # changes their owner when a unit starts, and removes the one in /run when the
  # unit stops.
  directories = {
    CacheDirectory = "/var/cache/metamcp";
    StateDirectory = "/var/lib/metamcp";
  }
  // lib.optionalAttrs (lib.hasPrefix "/run/metamcp/" (toString cfg.settings.listen.control)) {
    RuntimeDirectory = "/run/metamcp";
  };
  # The names in a directive, without the symbolic link after a colon.
  names =
    value:
    map (word: lib.head (lib.splitString ":" word)) (
      lib.concatMap (lib.splitString " ") (lib.toList value)
    );
in
{
  inherit isTaken;

  unit-conflict =
    lib.optional isTaken "services.metamcp.enable adds metamcp.service, but systemd.services.metamcp${
      lib.optionalString (files != [ ]) " in ${lib.concatStringsSep " and " files}"
    } gives this unit a second ExecStart=, so that systemd starts neither program: rename the other service, for example to systemd.services.mcp-aggregator${
      lib.optionalString (
        cfg.upstream != null
      ) ", and set services.metamcp.upstream.unit = \"mcp-aggregator.service\""
    }. If it should replace the program of metamcp, set ExecStart = [ \"\" \"PROGRAM\" ]."
    ++ map (
      name:
      "services.metamcp.enable adds metamcp.service, but systemd.services.${name}.aliases gives this name to another service: remove the alias."
    ) (others (service: lib.elem "metamcp.service" (service.aliases or [ ])));

  directory-conflict = lib.concatLists (
    lib.mapAttrsToList (
      directive: path:
      map (
        name:
        "services.metamcp.enable uses ${path}, and systemd.services.${name} uses it too (${directive}=): give that service another directory, for example mcp-aggregator."
      ) (others (service: lib.elem "metamcp" (names (service.serviceConfig.${directive} or [ ]))))
    ) directories
  );
}
