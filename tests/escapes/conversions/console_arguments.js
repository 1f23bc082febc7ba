// Attempt: to break the console with values that throw, call themselves, or cannot be shown.
// Contained: the exceptions are those of the script.
// expect: value ["shown","shown","shown","a getter","TypeError","shown"]
const outcomes = [];
const cycle = {};
cycle.cycle = cycle;
const { proxy, revoke } = Proxy.revocable({}, {});
revoke();
class Trap extends Error { get stack() { throw new Error('a getter'); } }
for (const value of [cycle, Symbol('x'), proxy, new Trap(), { [Symbol.toPrimitive]: 1, toString: null }, servers]) {
  try {
    console.log(value, typeof value === 'object' && value !== proxy && !(value instanceof Error) && 'toString' in value && value.toString === null ? `${value}` : '');
    outcomes.push('shown');
  } catch (error) {
    outcomes.push(error.message === 'a getter' ? error.message : error.name);
  }
}
return outcomes;
