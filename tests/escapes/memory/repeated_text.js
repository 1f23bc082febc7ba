// Attempt: to take a gigabyte with one text.
// Contained: the script ends at its memory, also if it would catch the exception.
// expect: error limit_exceeded details.limit=memory
try {
  return 'x'.repeat(2 ** 30 - 25).length;
} catch {
  return 'caught';
}
