// Attempt: to reach names by escapes.
// Contained: they are the same names.
// expect: value ["undefined","object"]
return [typeof \u0065val, typeof \u{73}ervers];
