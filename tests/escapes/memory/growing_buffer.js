// Attempt: to take gigabytes with a buffer that grows and is moved.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
let buffer = new ArrayBuffer(1 << 20, { maxByteLength: 1 << 30 });
for (;;) {
  buffer.resize(buffer.byteLength + (1 << 20));
  buffer = buffer.transfer(buffer.byteLength + (1 << 20));
}
