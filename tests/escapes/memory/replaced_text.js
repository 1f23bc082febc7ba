// Attempt: to take gigabytes with a replacement that repeats the text.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
return 'x'.repeat(1e5).replace(/x/g, '$`').length;
