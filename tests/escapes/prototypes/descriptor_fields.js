// Attempt: to break the definition of properties with fields of descriptors on all objects.
// Contained: a failed call still fails with its code.
// expect: value ["execution_failed","fake"]
Object.prototype.get = function () { return 'forged'; };
Object.prototype.set = function () {};
Object.prototype.value = 'forged';
Object.prototype.writable = false;
Object.prototype.enumerable = false;
try {
  return await servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
} catch (error) {
  return [error.code, error.server];
}
