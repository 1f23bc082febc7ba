// Attempt: to find a name in the global object that is not known.
// Contained: it has the language and the functions of the service, and nothing else.
// expect: value []
const known = new Set(`AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError
  Float16Array Float32Array Float64Array Function Infinity Int16Array Int32Array Int8Array Iterator JSON Map Math NaN Number Object
  Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError ToolError TypeError URIError Uint16Array
  Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet console decodeURI decodeURIComponent describeTool encodeURI
  encodeURIComponent globalThis isFinite isNaN parseFloat parseInt progress runChain searchTools servers sleep undefined`.split(/\s+/));
const found = Reflect.ownKeys(globalThis).map(String).filter((name) => !known.has(name) && name !== 'Symbol(Symbol.toStringTag)');
for (let walk = Object.getPrototypeOf(globalThis); walk !== Object.prototype; walk = Object.getPrototypeOf(walk)) found.push(String(walk));
return found;
