# Merges the cases of all files in a directory into one set. Each file is a function of
# `helpers`, the functions and values that its cases use.
#
# It rejects a case name that two files use, because one of the two cases would be lost.
directory: helpers:
builtins.foldl' (
  all: file:
  let
    cases = import (directory + "/${file}") helpers;
    duplicates = builtins.attrNames (builtins.intersectAttrs all cases);
  in
  if duplicates == [ ] then
    all // cases
  else
    throw "${file} has the case `${builtins.head duplicates}', which another file in its directory has too: rename one of them"
) { } (builtins.attrNames (builtins.readDir directory))
