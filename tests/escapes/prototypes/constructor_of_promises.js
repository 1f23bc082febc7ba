// Attempt: to have `await` build its promises with a constructor of the script, which takes the functions of the engine.
// Contained: the script gets only functions that settle its own promises.
// expect: value []
const reached = [];
class Thief {
  constructor(executor) {
    executor((value) => value, (error) => error);
    try {
      executor.constructor('return globalThis')();
      reached.push('executor');
    } catch (error) {
      if (!(error instanceof EvalError)) reached.push(String(error));
    }
  }
  static get [Symbol.species]() { return Thief; }
}
Object.defineProperty(Promise.prototype, 'constructor', { get: () => Thief, configurable: true });
const call = servers.fake.echo({ value: 1 });
call.then((value) => value);
call.finally(() => {});
const failing = servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
failing.catch((error) => error);
await sleep(1);
return reached;
