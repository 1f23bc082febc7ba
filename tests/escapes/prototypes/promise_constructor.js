// Attempt: to have results settled by another constructor of promises.
// Contained: the service's code has the real one.
// expect: value [7,true]
const Real = Promise;
const real = Real.prototype;
globalThis.Promise = class { constructor() { throw new Error('no promise'); } static resolve() { throw new Error('no resolve'); } };
Real.resolve = Real.reject = Real.all = Real.race = Real.withResolvers = () => { throw new Error('no helper'); };
const call = servers.fake.echo({ value: 7 });
const is_real = Object.getPrototypeOf(call) === real;
return [(await call).value, is_real];
