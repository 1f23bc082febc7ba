// Attempt: to read the real clock through the constructor of dates, which would make two runs differ.
// Contained: all ways show the time at which the script began or got its last result.
// expect: value []
const reached = [];
const start = Date.now();
const { constructor } = Date.prototype;
const times = [
  () => new Date().getTime(), () => new constructor().getTime(), () => new (class extends Date {})().getTime(),
  () => Reflect.construct(Date, []).getTime(), () => Reflect.construct(Date, [], Object) && start,
  () => new (new Date().constructor)().valueOf(), () => constructor.now(), () => Date.parse(Date()) + (start % 1000),
  () => Date.parse(Date.call(new Date(0))) + (start % 1000), () => new (Object.getPrototypeOf(new Date(0)).constructor)().getTime(),
];
let sum = 0;
for (let n = 0; n < 200000; n++) sum += n;
for (const time of times) if (time() !== start) reached.push(`${time}: ${time() - start}`);
if (typeof performance !== 'undefined' || typeof Temporal !== 'undefined') reached.push('another clock');
return reached;
