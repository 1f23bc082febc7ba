// Attempt: to re-enter the settlement of calls from jobs of the script.
// Contained: each call has its own result.
// expect: value [1,2,3]
const thenable = (value) => ({ then(resolve) { servers.fake.echo({ value }).then((result) => resolve(result.value)); } });
return Promise.all([thenable(1), Promise.resolve().then(() => thenable(2)), (async () => thenable(3))()]);
