// Attempt: to print more at once than a script may print.
// Contained: the script ends at its output, and does not go on as if it had printed.
// expect: error limit_exceeded details.limit=output
console.log('x'.repeat(3 << 20));
return 'printed';
