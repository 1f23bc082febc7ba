// Attempt: to take a gigabyte with a text that doubles.
// Contained: the engine joins texts only when they are read, and refuses one that is too long.
// expect: error script_failed details.kind=exception
let text = 'x';
for (;;) text += text;
