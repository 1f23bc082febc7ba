# A stub of the part of NixOS that a service module uses. It declares the options that
# the module defines (systemd.*, users.*, environment.etc, assertions, ...). It renders
# units byte for byte as NixOS does, into config.systemd.units."NAME".text.
#
# Only paths differ: NixOS has start scripts in the store, and the stub in
# /etc/unit-scripts, where the tests that boot the units can put them.
#
# Option names and unit syntax follow the NixOS manual. `nix flake check` evaluates the
# modules with nixpkgs itself.
{
  lib,
  config,
  pkgs,
  ...
}:
let
  inherit (builtins)
    attrNames
    attrValues
    concatStringsSep
    elem
    hashString
    isAttrs
    isList
    isPath
    map
    mapAttrs
    replaceStrings
    toJSON
    toString
    ;
  inherit (lib) mkOption types;

  required = type: mkOption { inherit type; };
  opt = type: default: mkOption { inherit type default; };
  strings = opt (types.listOf types.str) [ ];
  unitNames = opt (types.listOf (
    types.strMatching "[a-zA-Z0-9@%:_.\\-]+[.](automount|device|mount|path|scope|service|slice|socket|swap|target|timer)"
  )) [ ];

  # ----------------------------------------------------------------- sections
  # One "Key=value" of a unit file. A list is a repeated key. If one definition is a list,
  # the definitions are concatenated.
  directive = lib.mkOptionType {
    name = "systemd option";
    merge =
      loc: defs:
      let
        values = map (def: def.value) defs;
      in
      if lib.any isList values then lib.concatMap lib.toList values else lib.mergeEqualOption loc defs;
  };
  section = opt (types.attrsOf directive) { };
  # NixOS has types for these two directives.
  serviceSection =
    let
      known = {
        Restart = [
          "always"
          "no"
          "on-abnormal"
          "on-abort"
          "on-failure"
          "on-success"
        ];
        Type = [
          "dbus"
          "exec"
          "forking"
          "idle"
          "notify"
          "notify-reload"
          "oneshot"
          "simple"
        ];
      };
      content = value: if isAttrs value && value ? content then value.content else value;
    in
    opt (types.addCheck (types.attrsOf directive) (
      directives:
      lib.all (key: !directives ? ${key} || elem (content directives.${key}) known.${key}) (
        attrNames known
      )
    )) { };

  value = x: if builtins.isBool x then lib.boolToString x else toString x;
  lines =
    directives:
    lib.concatMapStrings (
      key: lib.concatMapStrings (x: "${key}=${value x}\n") (lib.toList directives.${key})
    ) (attrNames directives);

  # -------------------------------------------------------------------- units
  unit =
    suffix:
    {
      name,
      config,
      options,
      ...
    }:
    let
      triggers =
        kind: values:
        lib.optionalAttrs (values != [ ]) {
          "X-${kind}-Triggers" = pkgs.writeText "X-${kind}-Triggers-${name}" (
            toString (map (x: if isPath x then "${x}" else x) values)
          );
        };
      limit =
        key: option: lib.optionalAttrs options.${option}.isDefined { ${key} = toString config.${option}; };
    in
    {
      options = {
        name = required types.str;
        enable = opt types.bool true;
        overrideStrategy = opt (types.enum [
          "asDropin"
          "asDropinIfExists"
        ]) "asDropinIfExists";
        description = opt types.singleLineStr "";
        documentation = strings;
        requires = unitNames;
        wants = unitNames;
        upholds = unitNames;
        after = unitNames;
        before = unitNames;
        bindsTo = unitNames;
        partOf = unitNames;
        conflicts = unitNames;
        requisite = unitNames;
        onFailure = unitNames;
        onSuccess = unitNames;
        wantedBy = unitNames;
        requiredBy = unitNames;
        upheldBy = unitNames;
        aliases = unitNames;
        startLimitIntervalSec = required types.int;
        startLimitBurst = required types.int;
        restartTriggers = opt (types.listOf types.unspecified) [ ];
        reloadTriggers = opt (types.listOf directive) [ ];
        unitConfig = section;
      };
      config = {
        name = "${name}.${suffix}";
        unitConfig =
          mapAttrs (_: toString) (
            lib.filterAttrs (_: names: names != [ ]) {
              After = config.after;
              Before = config.before;
              BindsTo = config.bindsTo;
              Conflicts = config.conflicts;
              Documentation = config.documentation;
              OnFailure = config.onFailure;
              OnSuccess = config.onSuccess;
              PartOf = config.partOf;
              Requires = config.requires;
              Requisite = config.requisite;
              Upholds = config.upholds;
              Wants = config.wants;
            }
          )
          // lib.optionalAttrs (config.description != "") { Description = config.description; }
          // triggers "Restart" config.restartTriggers
          // triggers "Reload" config.reloadTriggers
          // limit "StartLimitIntervalSec" "startLimitIntervalSec"
          // limit "StartLimitBurst" "startLimitBurst";
      };
    };
  units = suffix: modules: opt (types.attrsOf (types.submodule ([ (unit suffix) ] ++ modules))) { };

  # The options of a service that are shell scripts, each with the suffix of its file name
  # and the directive that runs it.
  scripts = {
    preStart = {
      suffix = "pre-start";
      directive = "ExecStartPre";
    };
    script = {
      suffix = "start";
      directive = "ExecStart";
    };
    postStart = {
      suffix = "post-start";
      directive = "ExecStartPost";
    };
    reload = {
      suffix = "reload";
      directive = "ExecReload";
    };
    preStop = {
      suffix = "pre-stop";
      directive = "ExecStop";
    };
    postStop = {
      suffix = "post-stop";
      directive = "ExecStopPost";
    };
  };
  # The program that NixOS generates from a script. Its path changes with its text, so
  # that the unit changes too.
  program =
    name: script:
    let
      file = replaceStrings [ "\\" "@" ] [ "--" "_" ] name;
      text = "#!${pkgs.bash}/bin/bash\nset -e\n\n${script}\n\n";
    in
    {
      inherit text;
      path = "/etc/unit-scripts/${hashString "sha256" text}-unit-script-${file}/bin/${file}";
    };

  service =
    { name, config, ... }:
    let
      made = mapAttrs (option: { suffix, ... }: program "${name}-${suffix}" config.${option}) (
        lib.filterAttrs (option: _: config.${option} != "") scripts
      );
      command =
        option: path:
        if option == "script" then
          "${path} ${config.scriptArgs}"
        else if
          elem option [
            "postStart"
            "preStart"
          ]
        then
          [ path ]
        else
          path;
    in
    {
      options = {
        environment = opt (types.attrsOf (
          types.nullOr (
            types.oneOf [
              types.str
              types.path
              types.package
            ]
          )
        )) { };
        path = opt (types.listOf (
          types.oneOf [
            types.package
            types.str
          ]
        )) [ ];
        serviceConfig = serviceSection;
        scriptArgs = opt types.str "";
        restartIfChanged = opt types.bool true;
        reloadIfChanged = opt types.bool false;
        stopIfChanged = opt types.bool true;
        notSocketActivated = opt types.bool false;
        # Only in the stub: the text of each script, by its path.
        programs = opt (types.attrsOf types.str) { };
      }
      // mapAttrs (_: _: opt types.lines "") scripts;
      config = {
        path = lib.mkAfter [
          pkgs.coreutils
          pkgs.findutils
          pkgs.gnugrep
          pkgs.gnused
          pkgs.systemd
        ];
        environment.PATH =
          let
            directories = kind: map (package: "${lib.getBin package}/${kind}") config.path;
          in
          lib.mkIf (config.path != [ ]) (concatStringsSep ":" (directories "bin" ++ directories "sbin"));
        serviceConfig = lib.mapAttrs' (
          option: { path, ... }: lib.nameValuePair scripts.${option}.directive (command option path)
        ) made;
        programs = lib.mapAttrs' (_: { path, text }: lib.nameValuePair path text) made;
      };
    };

  # ---------------------------------------------------------------- rendering
  text =
    unit: body:
    "[Unit]\n${lines unit.unitConfig}\n"
    + body
    + lib.optionalString (
      unit.wantedBy != [ ]
    ) "\n[Install]\nWantedBy=${concatStringsSep " " unit.wantedBy}\n";
  serviceText =
    unit:
    let
      environment = config.systemd.globalEnvironment // unit.environment;
    in
    text unit (
      "[Service]\n"
      + lib.concatMapStrings (
        key:
        lib.optionalString (
          environment.${key} != null
        ) "Environment=${toJSON "${key}=${environment.${key}}"}\n"
      ) (attrNames environment)
      + lib.optionalString unit.reloadIfChanged "X-ReloadIfChanged=true\n"
      + lib.optionalString (!unit.reloadIfChanged && !unit.restartIfChanged) "X-RestartIfChanged=false\n"
      + lib.optionalString (!unit.stopIfChanged) "X-StopIfChanged=false\n"
      + lib.optionalString unit.notSocketActivated "X-NotSocketActivated=true\n"
      + lines unit.serviceConfig
    );
  socketText =
    unit:
    let
      addresses = key: values: "${concatStringsSep "\n" (map (address: "${key}=${address}") values)}\n";
    in
    text unit (
      "[Socket]\n${lines unit.socketConfig}\n"
      + addresses "ListenStream" unit.listenStreams
      + addresses "ListenDatagram" unit.listenDatagrams
    );
  plainText =
    name: directives: unit:
    text unit "[${name}]\n${lines unit.${directives}}\n";
  targetText = unit: "[Unit]\n${lines unit.unitConfig}\n";

  render =
    renderer: declared:
    lib.mapAttrs' (
      _: unit:
      lib.nameValuePair unit.name {
        inherit (unit)
          aliases
          enable
          overrideStrategy
          requiredBy
          upheldBy
          wantedBy
          ;
        text = renderer unit;
      }
    ) declared;

  # ------------------------------------------------------------- other options
  named =
    more:
    opt (types.attrsOf (
      types.submodule (
        { name, ... }:
        {
          options = {
            name = opt types.str name;
          }
          // more;
        }
      )
    )) { };
  file =
    { name, config, ... }:
    {
      options = {
        enable = opt types.bool true;
        target = opt types.str name;
        text = opt (types.nullOr types.lines) null;
        source = required types.path;
        mode = opt types.str "symlink";
        uid = opt types.int 0;
        gid = opt types.int 0;
        user = opt types.str "+${toString config.uid}";
        group = opt types.str "+${toString config.gid}";
      };
      config.source = lib.mkIf (config.text != null) (
        lib.mkDefault (pkgs.writeText "etc-${replaceStrings [ "/" ] [ "-" ] name}" config.text)
      );
    };
  ports = mkOption {
    type = types.listOf types.port;
    default = [ ];
    apply = numbers: lib.unique (builtins.sort builtins.lessThan numbers);
  };
in
{
  options = {
    assertions = opt (types.listOf types.unspecified) [ ];
    warnings = strings;
    meta = {
      maintainers = opt (types.listOf types.unspecified) [ ];
      doc = opt types.unspecified null;
    };
    environment.systemPackages = opt (types.listOf types.package) [ ];
    environment.etc = opt (types.attrsOf (types.submodule file)) { };
    networking.firewall.allowedTCPPorts = ports;
    users.users = named {
      group = opt types.str "";
      extraGroups = strings;
      isNormalUser = opt types.bool false;
      isSystemUser = opt types.bool false;
      uid = opt (types.nullOr types.int) null;
      home = opt types.path "/var/empty";
      createHome = opt types.bool false;
      description = opt types.str "";
    };
    users.groups = named {
      gid = opt (types.nullOr types.int) null;
      members = strings;
    };
    systemd = {
      services = units "service" [ service ];
      sockets = units "socket" [
        {
          options = {
            listenStreams = strings;
            listenDatagrams = strings;
            socketConfig = section;
          };
        }
      ];
      slices = units "slice" [ { options.sliceConfig = section; } ];
      timers = units "timer" [ { options.timerConfig = section; } ];
      paths = units "path" [ { options.pathConfig = section; } ];
      targets = units "target" [ ];
      package = opt types.package pkgs.systemd;
      packages = opt (types.listOf types.package) [ ];
      globalEnvironment = opt (types.attrsOf (types.nullOr types.str)) { };
      tmpfiles.rules = strings;
      units = opt types.unspecified { };
    };
    specialisation = opt (types.attrsOf (types.attrsOf types.raw)) { };
    system.build = opt (types.attrsOf types.raw) { toplevel = "/run/current-system"; };
    system.switch.enable = opt types.bool true;
    # Only in the stub: the text of each start script, by its path without the first slash.
    startScripts = opt (types.attrsOf types.str) { };
  };
  # Two of the groups that every NixOS has.
  config.users.groups = {
    users = { };
    wheel = { };
  };
  config.startScripts = lib.mapAttrs' (path: lib.nameValuePair (lib.removePrefix "/" path)) (
    lib.foldl' (all: unit: all // unit.programs) { } (attrValues config.systemd.services)
  );
  config.systemd.units =
    render (plainText "Path" "pathConfig") config.systemd.paths
    // render serviceText config.systemd.services
    // render (plainText "Slice" "sliceConfig") config.systemd.slices
    // render socketText config.systemd.sockets
    // render targetText config.systemd.targets
    // render (plainText "Timer" "timerConfig") config.systemd.timers;
}
