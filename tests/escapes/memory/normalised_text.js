// Attempt: to take gigabytes with a text that grows when it is normalised.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
return '\ufdfa'.repeat(1e6).normalize('NFKD').length;
