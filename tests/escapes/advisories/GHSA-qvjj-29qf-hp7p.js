// Attempt: vm2 before 3.10.5 (CVE-2026-24120). The function that reset the species of a promise used `Object.defineProperty` and
// `Array.prototype.includes`, which the script replaced. Then an async function that fails inside the engine handed a host
// error to the script.
// Contained: nothing is reset, because there is nothing of another world.
// expect: value [true]
const outcomes = [];
Object.defineProperty = () => {};
Array.prototype.includes = () => true;
async function fail() {
  const error = new Error();
  error.name = Symbol();
  return String(error.stack) + String(error);
}
const promise = fail();
promise.constructor = {
  [Symbol.species]: class {
    constructor(executor) {
      executor((value) => value, (error) => {
        try {
          outcomes.push(typeof error.constructor.constructor('return globalThis')());
        } catch (refusal) {
          outcomes.push(refusal instanceof EvalError);
        }
      });
    }
  },
};
promise.then();
await sleep(20);
return outcomes;
