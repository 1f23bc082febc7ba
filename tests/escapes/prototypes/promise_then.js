// Attempt: to intercept results with another `then` of all promises.
// Contained: `await` of the host's own promises does not use it, and nothing else is intercepted.
// expect: value {"value":7}
Promise.prototype.then = function () { throw new Error('no then'); };
Promise.prototype.catch = Promise.prototype.finally = null;
return await servers.fake.echo({ value: 7 });
