// Attempt: to make code from a string with the prototypes of iterators and generators.
// Contained: all of their constructors refuse or are plain.
// expect: value []
const reached = [];
const iterators = [
  [][Symbol.iterator](), new Map().entries(), new Set().values(), ''[Symbol.iterator](), 'a'.matchAll(/a/g),
  (function* () {})(), (async function* () {})(), Iterator.from({ next() { return { done: true }; } }), [].values().map((x) => x),
  (async function* () { yield* [1]; })(),
];
for (const iterator of iterators) {
  for (let walk = iterator; walk !== null; walk = Object.getPrototypeOf(walk)) {
    for (const key of Reflect.ownKeys(walk)) {
      const { value, get } = Object.getOwnPropertyDescriptor(walk, key);
      for (const made of [value, get]) {
        if (typeof made !== 'function') continue;
        try {
          made.constructor('return globalThis')();
          reached.push(String(key));
        } catch (error) {
          if (!(error instanceof EvalError)) reached.push(`${String(key)}: ${error}`);
        }
      }
    }
  }
}
return reached;
