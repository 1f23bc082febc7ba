// Attempt: to make code from a string with the constructors of the functions that call tools.
// Contained: every constructor refuses, also through `call`, `apply`, `bind` and `Reflect`.
// expect: value []
const reached = [];
const methods = [servers.fake.echo, servers.fake.call, servers.fake['no such tool'], servers.none.such];
const ways = [
  (made) => made.constructor('return globalThis'),
  (made) => new made.constructor('return globalThis'),
  (made) => made.constructor.call(null, 'return globalThis'),
  (made) => made.constructor.apply(null, ['return globalThis']),
  (made) => made.constructor.bind(null, 'return globalThis')(),
  (made) => Reflect.construct(made.constructor, ['return globalThis']),
  (made) => Reflect.apply(made.constructor, null, ['return globalThis']),
];
for (const method of methods) {
  for (const way of ways) {
    try {
      reached.push(typeof way(method));
    } catch (error) {
      if (!(error instanceof EvalError)) reached.push(String(error));
    }
  }
}
return reached;
