// Attempt: to read the code of the service from its functions.
// Contained: a script may read the code of what it can call, which holds no secret; native functions show none.
// expect: value [true,true]
return [String(Math.max).includes('native code'), String(servers.fake.echo).length < 200];
