// Attempt: to break the service's code with another iterator of arrays.
// Contained: calls, failures and output are as before.
// expect: value ["execution_failed",7]
const { log } = console;
Array.prototype[Symbol.iterator] = function () { throw new Error('no iteration'); };
Object.getPrototypeOf([].values()).next = function () { throw new Error('no step'); };
log('printed', 1, 2);
let code;
try {
  await servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
} catch (error) {
  code = error.code;
}
const result = await servers.fake.echo({ value: 7 });
const outcome = [];
outcome[0] = code;
outcome[1] = result.value;
return outcome;
