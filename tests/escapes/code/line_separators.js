// Attempt: to hide code behind characters that end lines.
// Contained: they end lines, also those of comments.
// expect: value [8,2]
let value = 7; //  value = 8;
const text = '  ';
return [value, text.length];
