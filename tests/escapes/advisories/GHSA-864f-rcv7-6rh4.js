// Attempt: isolated-vm up to 7.0.0. A list was read twice, once to check it and once to use it, and its getters answered differently.
// Contained: arguments are read once, and only text crosses the pipe.
// expect: value [{"value":[1]},1]
let n = 0;
const list = [];
Object.defineProperty(list, 0, { enumerable: true, get() { n += 1; return n === 1 ? 1 : new ArrayBuffer(8); } });
const result = await servers.fake.echo({ value: list });
return [result, n];
