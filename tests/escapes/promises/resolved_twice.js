// Attempt: to settle a call twice, with functions that the script has kept.
// Contained: a promise of the host gives the script nothing that settles it.
// expect: value [7,"function"]
let kept;
const Real = Promise;
globalThis.Promise = class extends Real { constructor(executor) { super((resolve, reject) => { kept = resolve; executor(resolve, reject); }); } };
const call = servers.fake.echo({ value: 7 });
const own = new Promise(() => {});
return [(await call).value, typeof kept];
