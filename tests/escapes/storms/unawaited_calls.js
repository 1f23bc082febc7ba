// Attempt: to leave a hundred thousand calls behind.
// Contained: the script returns.
// expect: value "done"
for (let n = 0; n < 100000; n++) servers.fake.echo({ value: n });
return 'done';
