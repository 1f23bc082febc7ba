// Attempt: to print characters that take six bytes in a message, and more than a message holds.
// Contained: they are printed in pieces, and count as they are.
// expect: error script_failed details.kind=exception
const text = '\u0001'.repeat(1e6);
console.log(text);
throw new Error('printed');
