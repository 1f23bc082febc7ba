# The cases of all files in a directory as one set.  Each file is a function that
# is given `words`, what its cases are written with.
#
# A name that two files use is refused: one of the two cases would be left out
# without a word.
directory: words:
builtins.foldl' (
  all: file:
  let
    cases = import (directory + "/${file}") words;
    twice = builtins.attrNames (builtins.intersectAttrs all cases);
  in
  if twice == [ ] then
    all // cases
  else
    throw "${file} has a case `${builtins.head twice}', and so has another file beside it: rename one of them"
) { } (builtins.attrNames (builtins.readDir directory))
