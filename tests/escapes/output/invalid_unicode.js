// Attempt: to print text that is no Unicode, and control characters.
// Contained: it is printed as far as it is text.
// expect: value "printed"
console.log('\ud800', '\udc00x', '\0', '\u001b[2J', '\u2028', '\uffff', '\u{10ffff}', `\r\n\x07`);
console.error(Symbol('\ud800'), new Error('\ud800'));
return 'printed';
