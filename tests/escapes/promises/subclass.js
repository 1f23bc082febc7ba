// Attempt: to take over the results of calls with a subclass of promises and its species.
// Contained: the script gets its own results, and its own errors.
// expect: value ["execution_failed",{"value":1}]
const taken = [];
class Taker extends Promise {
  static get [Symbol.species]() { return class { constructor(executor) { executor((value) => taken.push(value), (error) => taken.push(error.code)); } }; }
}
const good = servers.fake.echo({ value: 1 });
const bad = servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
good.constructor = bad.constructor = Taker;
good.then();
bad.then();
await sleep(200);
while (taken.length < 2) await sleep(20);
return taken.sort((one) => (typeof one === 'string' ? -1 : 1));
