# Escapes a text for a unit file, so that systemd expands no % specifier in it.
{ lib }: lib.replaceStrings [ "%" ] [ "%%" ]
