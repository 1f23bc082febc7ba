// Attempt: to make code from a string with the constructors of a tool's result and of its parts.
// Contained: a result is plain data of the script's own world.
// expect: value []
const reached = [];
const visit = (name, part) => {
  if (part === null || typeof part !== 'object') part = Object(part);
  try {
    part.constructor.constructor('return globalThis')();
    reached.push(name);
  } catch (error) {
    if (!(error instanceof EvalError)) reached.push(`${name}: ${error}`);
  }
};
const result = await servers.fake.echo({ value: { list: [1, 'text', true, { deep: {} }], number: 1.5 } });
visit('result', result);
visit('value', result.value);
visit('list', result.value.list);
visit('object', result.value.list[3]);
visit('deep', result.value.list[3].deep);
visit('number', result.value.number);
visit('text', result.value.list[1]);
visit('boolean', result.value.list[2]);
if (Object.getPrototypeOf(result) !== Object.prototype) reached.push('a prototype of another world');
if (Object.getPrototypeOf(result.value.list) !== Array.prototype) reached.push('another array');
return reached;
