// Attempt: to take gigabytes by splitting a text.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
return 'ab,'.repeat(2e6).split('').length;
