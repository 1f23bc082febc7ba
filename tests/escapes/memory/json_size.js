// Attempt: to take gigabytes by reading JSON that is large.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
return JSON.parse(`[${'{"a":[{}]},'.repeat(2e5)}1]`).length;
