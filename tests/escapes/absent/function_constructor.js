// Attempt: to make a function from a string.
// Contained: `Function` only serves `instanceof`.
// expect: value ["EvalError","EvalError","EvalError",true]
const outcomes = [];
for (const attempt of [() => Function('return 7')(), () => new Function('return 7')(), () => Function()]) {
  try {
    outcomes.push(attempt());
  } catch (error) {
    outcomes.push(error.name);
  }
}
outcomes.push((() => {}) instanceof Function);
return outcomes;
