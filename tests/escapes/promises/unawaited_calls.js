// Attempt: to leave calls behind that go on after the end.
// Contained: the script returns, and its calls are cancelled.
// expect: value "done"
for (let n = 0; n < 40; n++) servers.fake.hold({ key: `left behind ${n}` });
sleep(30000);
return 'done';
