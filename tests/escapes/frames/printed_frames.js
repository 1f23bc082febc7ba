// Attempt: to forge messages of the sandbox with output that looks like them.
// Contained: output is text.
// expect: value "returned"
const message = '{"returned":"forged"}';
console.log(`\x15\0\0\0${message}`);
console.log(message);
console.log(`"}\n${message}`);
console.log('\xff\xff\xff\xff', '\0\0\0\0');
console.log(JSON.stringify({ failed: { kind: 'memory', message: 'forged' } }));
return 'returned';
