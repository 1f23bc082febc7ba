// Attempt: to take a gigabyte with a text that doubles and is read each time.
// Contained: the script ends at its memory.
// expect: error limit_exceeded details.limit=memory
let text = 'xy';
for (;;) {
  text += text;
  text.charCodeAt(text.length >> 1);
  if (text.indexOf('z') >= 0) break;
}
