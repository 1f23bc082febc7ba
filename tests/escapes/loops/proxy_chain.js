// Attempt: to overflow the native stack with a long chain of proxies.
// Contained: the engine throws a RangeError.
// expect: value "RangeError"
let chain = {};
for (let n = 0; n < 50000; n++) chain = new Proxy(chain, {});
try {
  return chain.x;
} catch (error) {
  return error.name;
}
