// Attempt: to make code from a string with functions and objects that the engine passes to callbacks.
// Contained: they are of the script's own world.
// expect: value []
const reached = [];
const seen = [];
new Promise((resolve, reject) => { seen.push(resolve, reject); resolve(); });
'a'.replace(/a/, (...all) => { seen.push(all); return 'b'; });
[1].map((...all) => { seen.push(all, all[2]); });
JSON.parse('[1]', function (key, value, context) { seen.push(this, context); return value; });
JSON.stringify([1], function (key, value) { seen.push(this); return value; });
new Proxy({}, { get: (...all) => { seen.push(all[0], all[1]); } }).x;
((text, ...values) => { seen.push(text, text.raw, values); })`a${1}b`;
Object.groupBy([1], (...all) => { seen.push(all); return 'x'; });
(function () { seen.push(arguments); })(1);
await { then(resolve, reject) { seen.push(resolve, reject); resolve(); } };
for (const part of [...seen]) {
  if (part === undefined) continue;
  try {
    part.constructor.constructor('return globalThis')();
    reached.push(String(part));
  } catch (error) {
    if (!(error instanceof EvalError)) reached.push(String(error));
  }
}
return reached;
