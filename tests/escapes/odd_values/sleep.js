// Attempt: to pause for a time that is no time.
// Contained: a pause is 0 to 30 s, and all else is refused.
// expect: value ["done","done","done","done","done","done","limit_exceeded","limit_exceeded","limit_exceeded","limit_exceeded","limit_exceeded","limit_exceeded","limit_exceeded","TypeError","TypeError","RangeError"]
const outcomes = [];
const values = [
  undefined, 0, -0, null, '5', [], NaN, -1, -Number.MIN_VALUE, Infinity, 2 ** 53, 30000.001, {},
  1n, Symbol('x'), { valueOf() { throw new RangeError(); } },
];
for (const value of values) {
  try {
    await sleep(value);
    outcomes.push('done');
  } catch (error) {
    outcomes.push(error.code ?? error.name);
  }
}
return outcomes;
