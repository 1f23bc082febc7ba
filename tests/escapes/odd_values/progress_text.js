// Attempt: to flood the client with the text of its progress.
// Contained: the text is cut.
// expect: value "done"
for (let n = 0; n < 20; n++) progress(n, 20, 'x'.repeat(1 << 20));
return 'done';
