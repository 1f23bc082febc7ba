# A text as a value in a unit: systemd puts nothing in for what begins with "%".
{ lib }: lib.replaceStrings [ "%" ] [ "%%" ]
