// Attempt: to take a gigabyte by padding.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
return 'x'.padEnd(2 ** 29, 'ab') + 'y'.padStart(2 ** 29, 'cd');
