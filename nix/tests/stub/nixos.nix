# Stands in for the part of NixOS that a service module talks to: declares the
# options it defines (systemd.*, users.*, environment.etc, assertions, ...) and
# renders units as NixOS does, into config.systemd.units."NAME".text.
#
# Option names and unit syntax follow the NixOS manual.  This is a test double;
# the real proof is an evaluation with nixpkgs.
{
  lib,
  config,
  pkgs,
  ...
}:
let
  inherit (builtins)
    attrNames
    concatLists
    concatStringsSep
    foldl'
    hashString
    head
    isInt
    isFloat
    isList
    length
    map
    toJSON
    toString
    ;
  inherit (lib) mkOption types;

  opt = type: default: mkOption { inherit type default; };
  strs = opt (types.listOf types.str) [ ];

  # One "Key=value" of a unit file: a list stands for a repeated key, and
  # definitions of a list from several modules are put one after the other.
  unitOption = lib.mkOptionType {
    name = "systemd option";
    check = _: true;
    merge =
      loc: defs:
      let
        vs = map (d: d.value) defs;
      in
      if builtins.any isList vs then
        concatLists (map (v: if isList v then v else [ v ]) vs)
      else if length vs == 1 || builtins.all (v: v == head vs) vs then
        head vs
      else
        throw "The option `${lib.showOption loc}' has conflicting definitions.";
  };
  section = opt (types.attrsOf unitOption) { };

  commonUnit = {
    enable = opt types.bool true;
    description = opt types.str "";
    documentation = strs;
    requires = strs;
    wants = strs;
    after = strs;
    before = strs;
    bindsTo = strs;
    partOf = strs;
    conflicts = strs;
    requisite = strs;
    upholds = strs;
    onFailure = strs;
    onSuccess = strs;
    wantedBy = strs;
    requiredBy = strs;
    upheldBy = strs;
    aliases = strs;
    overrideStrategy = opt types.str "asDropinIfExists";
    startLimitIntervalSec = opt (types.nullOr types.int) null;
    startLimitBurst = opt (types.nullOr types.int) null;
    unitConfig = section;
  };
  serviceOnly = {
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
    serviceConfig = section;
    script = opt types.lines "";
    scriptArgs = opt types.str "";
    preStart = opt types.str "";
    postStart = opt types.str "";
    reload = opt types.str "";
    restartTriggers = opt (types.listOf types.unspecified) [ ];
    reloadTriggers = opt (types.listOf types.unspecified) [ ];
    restartIfChanged = opt types.bool true;
    reloadIfChanged = opt types.bool false;
    stopIfChanged = opt types.bool true;
    notSocketActivated = opt types.bool false;
    confinement = opt types.unspecified { };
  };
  units = more: opt (types.attrsOf (types.submodule { options = commonUnit // more; })) { };

  # ------------------------------------------------------------- rendering
  value =
    x:
    if x == true then
      "true"
    else if x == false then
      "false"
    else if isInt x || isFloat x then
      toString x
    else
      "${toString x}";
  lines =
    attrs:
    concatStringsSep "" (
      concatLists (
        map (
          k:
          let
            v = attrs.${k};
          in
          if v == null then [ ] else map (x: "${k}=${value x}\n") (if isList v then v else [ v ])
        ) (attrNames attrs)
      )
    );
  nonEmpty = k: l: if l == [ ] then { } else { ${k} = concatStringsSep " " l; };
  unitSection =
    u:
    "[Unit]\n"
    + lines (
      nonEmpty "Requires" u.requires
      // nonEmpty "Wants" u.wants
      // nonEmpty "Upholds" u.upholds
      // nonEmpty "After" u.after
      // nonEmpty "Before" u.before
      // nonEmpty "BindsTo" u.bindsTo
      // nonEmpty "PartOf" u.partOf
      // nonEmpty "Conflicts" u.conflicts
      // nonEmpty "Requisite" u.requisite
      // nonEmpty "Documentation" u.documentation
      // nonEmpty "OnFailure" u.onFailure
      // nonEmpty "OnSuccess" u.onSuccess
      // (if u.description == "" then { } else { Description = u.description; })
      // (
        if u.startLimitIntervalSec == null then
          { }
        else
          { StartLimitIntervalSec = u.startLimitIntervalSec; }
      )
      // (if u.startLimitBurst == null then { } else { StartLimitBurst = u.startLimitBurst; })
      // (
        if u.restartTriggers or [ ] == [ ] then
          { }
        else
          { X-Restart-Triggers = hashString "sha256" (toJSON (map toString u.restartTriggers)); }
      )
      // (
        if u.reloadTriggers or [ ] == [ ] then
          { }
        else
          { X-Reload-Triggers = hashString "sha256" (toJSON (map toString u.reloadTriggers)); }
      )
      // u.unitConfig
    );
  install =
    u: if u.wantedBy == [ ] then "" else "\n[Install]\nWantedBy=${concatStringsSep " " u.wantedBy}\n";

  noScript =
    name: s: what:
    if s == "" then
      ""
    else
      throw "stub: systemd.services.${name}.${what} is not supported: use serviceConfig.ExecStart and friends";
  serviceText =
    name: u:
    let
      path = u.path ++ [
        pkgs.coreutils
        pkgs.findutils
        pkgs.gnugrep
        pkgs.gnused
        pkgs.systemd
      ];
      dirs = d: concatStringsSep ":" (map (p: "${p}/${d}") path);
      env = {
        PATH = "${dirs "bin"}:${dirs "sbin"}";
      }
      // config.systemd.globalEnvironment
      // u.environment;
    in
    noScript name u.preStart "preStart"
    + unitSection u
    + "\n[Service]\n"
    + concatStringsSep "" (
      map (k: if env.${k} == null then "" else "Environment=${toJSON "${k}=${toString env.${k}}"}\n") (
        attrNames env
      )
    )
    + (
      if u.reloadIfChanged then
        "X-ReloadIfChanged=true\n"
      else if !u.restartIfChanged then
        "X-RestartIfChanged=false\n"
      else
        ""
    )
    + (if u.stopIfChanged then "" else "X-StopIfChanged=false\n")
    + (if u.notSocketActivated then "X-NotSocketActivated=true\n" else "")
    + lines (
      u.serviceConfig
      // (
        if u.script == "" then { } else { ExecStart = "/${(startScript name u).path} ${u.scriptArgs}"; }
      )
    )
    + install u;

  # The program that NixOS makes of `script`, and where it is: in the store there.
  # Its path changes with its text here too, so that the unit does.
  startScript =
    name: u:
    let
      file = "${builtins.replaceStrings [ "@" ] [ "_" ] name}-start";
      text = ''
        #!${pkgs.bash}/bin/bash
        set -e

        ${u.script}

      '';
    in
    {
      inherit text;
      path = "etc/unit-scripts/${hashString "sha256" text}-unit-script-${file}/bin/${file}";
    };
  plain =
    sec: cfgName: _: u:
    unitSection u + "\n[${sec}]\n" + lines u.${cfgName} + install u;
  socketText =
    _: u:
    unitSection u
    + "\n[Socket]\n"
    + lines u.socketConfig
    + concatStringsSep "" (map (s: "ListenStream=${s}\n") u.listenStreams)
    + concatStringsSep "" (map (s: "ListenDatagram=${s}\n") u.listenDatagrams)
    + install u;

  render =
    suffix: f: us:
    foldl' (a: b: a // b) { } (
      map (n: {
        "${n}.${suffix}" = {
          inherit (us.${n})
            enable
            aliases
            wantedBy
            requiredBy
            ;
          text = f n us.${n};
        };
      }) (attrNames us)
    );
  s = config.systemd;
in
{
  options = {
    assertions = opt (types.listOf types.unspecified) [ ];
    warnings = opt (types.listOf types.str) [ ];
    meta = opt types.unspecified { };
    environment.systemPackages = opt (types.listOf types.package) [ ];
    environment.etc = opt (types.attrsOf (
      types.submodule {
        options = {
          enable = opt types.bool true;
          text = opt (types.nullOr types.str) null;
          source = opt (types.nullOr types.path) null;
          mode = opt types.str "symlink";
          user = opt types.str "root";
          group = opt types.str "root";
        };
      }
    )) { };
    users.users = opt (types.attrsOf (types.attrsOf types.unspecified)) { };
    users.groups = opt (types.attrsOf (types.attrsOf types.unspecified)) { };
    systemd = {
      services = units serviceOnly;
      sockets = units {
        listenStreams = strs;
        listenDatagrams = strs;
        socketConfig = section;
      };
      slices = units { sliceConfig = section; };
      timers = units { timerConfig = section; };
      targets = units { };
      paths = units { pathConfig = section; };
      packages = opt (types.listOf types.package) [ ];
      globalEnvironment = opt (types.attrsOf types.str) { };
      tmpfiles.rules = strs;
      tmpfiles.settings = opt types.unspecified { };
      units = opt types.unspecified { };
    };
    specialisation = opt (types.attrsOf (types.attrsOf types.raw)) { };
    system.build = opt (types.attrsOf types.raw) { toplevel = "/run/current-system"; };
    # Ours: the text of each start script, by its path.
    startScripts = opt types.unspecified { };
    networking.firewall.allowedTCPPorts = opt (types.listOf types.port) [ ];
  };
  config.startScripts = foldl' (a: b: a // b) { } (
    map (
      name:
      let
        script = startScript name s.services.${name};
      in
      if s.services.${name}.script == "" then { } else { ${script.path} = script.text; }
    ) (attrNames s.services)
  );
  config.systemd.units =
    render "service" serviceText s.services
    // render "socket" socketText s.sockets
    // render "slice" (plain "Slice" "sliceConfig") s.slices
    // render "timer" (plain "Timer" "timerConfig") s.timers
    // render "path" (plain "Path" "pathConfig") s.paths
    // render "target" (_: u: unitSection u + install u) s.targets;
}
