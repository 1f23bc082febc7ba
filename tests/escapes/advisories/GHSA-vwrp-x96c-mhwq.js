// Attempt: vm2 3.9.6 to 3.10.5 (CVE-2026-44005). With the host's getter of `__proto__`, taken from a method of a host function, the
// script walked to the prototypes of the host and changed them for everyone.
// Contained: the walk from any value of the host ends at the script's own prototypes; the service's code does not read them.
// expect: value [true,true,true,{"value":7}]
const { get } = Object.getOwnPropertyDescriptor(Object.prototype, '__proto__');
const lookup = {}.__lookupGetter__;
const getter = Reflect.apply(lookup, servers.fake.echo, ['__proto__']);
const walk = (value) => {
  let last = value;
  while (getter.call(last)) last = getter.call(last);
  return last === Object.prototype;
};
const outcomes = [walk(servers.fake.echo), walk(await servers.fake.echo({ value: 1 })), getter === get && walk(sleep(0))];
Object.prototype.marker = Array.prototype.marker = Function.prototype.marker = 'polluted';
outcomes.push(await servers.fake.echo({ value: 7 }));
return outcomes;
