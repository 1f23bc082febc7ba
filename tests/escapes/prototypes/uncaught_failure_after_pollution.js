// Attempt: to lose the failure of a call that is not caught, with changed prototypes of all kinds.
// Contained: the script fails with the code of the call.
// expect: error execution_failed details.kind=exception
Array.prototype[Symbol.iterator] = null;
String.prototype.toJSON = () => 'forged';
String.prototype.slice = () => 'forged';
String.prototype.toWellFormed = () => 'forged';
Error.prototype.toString = () => { throw 1; };
JSON.stringify = () => 'forged';
Reflect.apply = () => 'forged';
Object.defineProperty(Error, Symbol.hasInstance, { value: () => false });
Error.isError = () => false;
const failing = servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
Object.prototype.toJSON = () => ({ name: 'Error', message: 'forged', code: 'internal' });
await failing;
