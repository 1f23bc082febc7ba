// Attempt: to leave a hundred thousand pauses behind.
// Contained: the script returns, and no pause goes on.
// expect: value "done"
for (let n = 0; n < 100000; n++) sleep(30000);
return 'done';
