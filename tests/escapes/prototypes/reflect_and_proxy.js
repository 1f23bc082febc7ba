// Attempt: to break dates and servers with another `Reflect`, `Proxy` and `Object`.
// Contained: the service's code has the real ones.
// expect: value [7,0,true]
Reflect.construct = Reflect.apply = Reflect.ownKeys = () => { throw new Error('no reflection'); };
globalThis.Proxy = globalThis.Reflect = null;
for (const name of ['create', 'freeze', 'defineProperty', 'getPrototypeOf', 'assign', 'entries']) Object[name] = () => { throw new Error(name); };
globalThis.Object = null;
const date = new Date(0);
return [(await servers.another.echo.call.call(servers.fake.echo, null, { value: 7 })).value, date.getTime(), new Date() - 0 > 1e12];
