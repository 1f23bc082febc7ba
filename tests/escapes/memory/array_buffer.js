// Attempt: to take a gigabyte with one buffer.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
return new ArrayBuffer(1 << 30).byteLength;
