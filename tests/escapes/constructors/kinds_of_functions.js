// Attempt: to find a kind of function whose constructor makes code from a string.
// Contained: the constructors of all kinds refuse.
// expect: value []
const reached = [];
class Example { static method() {} get field() { return 1; } static async *generator() {} #hidden() {} static { this.block = () => {}; } }
const kinds = [
  function () {}, () => {}, async function () {}, async () => {}, function* () {}, async function* () {},
  Example, Example.method, Example.generator, Example.block, { method() {} }.method,
  Object.getOwnPropertyDescriptor(Example.prototype, 'field').get,
  (() => {}).bind(), new Proxy(function () {}, {}), new Proxy(class {}, {}), Array, Array.prototype.map, Symbol, Proxy,
  Promise.withResolvers().resolve, Proxy.revocable({}, {}).revoke,
];
for (const kind of kinds) {
  for (let walk = kind; walk !== null; walk = Object.getPrototypeOf(walk)) {
    const { constructor } = walk;
    if (typeof constructor !== 'function' || constructor === Object) continue;
    for (const make of [() => constructor('return 7'), () => new constructor('return 7'), () => constructor('a', 'return a')]) {
      try {
        const made = make();
        if (typeof made === 'function') reached.push(String(kind));
      } catch (error) {
        if (!(error instanceof EvalError || error instanceof TypeError)) reached.push(String(error));
      }
    }
  }
}
return reached;
