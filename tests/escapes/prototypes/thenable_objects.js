// Attempt: to make every object a promise, so that results are settled by the script.
// Contained: the script only replaces its own results.
// expect: value 42
Object.prototype.then = function (resolve) { resolve(42); };
const result = await servers.fake.echo({ value: 7 });
delete Object.prototype.then;
return result;
