// Attempt: to end the process with rejections that no code handles.
// Contained: they have no effect.
// expect: value 7
for (let n = 0; n < 1000; n++) Promise.reject(new Error('unhandled'));
for (let n = 0; n < 20; n++) servers.fake.rpc_error({ code: -32000, message: 'unhandled' });
await sleep(20);
return 7;
