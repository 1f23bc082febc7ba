// Attempt: to report progress that is no progress.
// Contained: it is a number, and all else is refused.
// expect: value ["done","done","done","done","TypeError","TypeError","TypeError","TypeError","TypeError","TypeError","RangeError"]
const outcomes = [];
for (const values of [
  [1], [-1, -1, ''], [1e308, NaN, {}], [5, Infinity, '\ud800'], [NaN], [Infinity], ['1'], [null], [undefined], [1n],
  [1, 2, { toString() { throw new RangeError(); } }],
]) {
  try {
    progress(...values);
    outcomes.push('done');
  } catch (error) {
    outcomes.push(error.name);
  }
}
return outcomes;
