// Attempt: to run a string with `eval`, directly and indirectly.
// Contained: there is no `eval`.
// expect: value ["ReferenceError","TypeError","TypeError","undefined"]
const outcomes = [];
for (const attempt of [() => eval('7'), () => globalThis.eval('7'), () => (0, globalThis['ev' + 'al'])('7')]) {
  try {
    outcomes.push(attempt());
  } catch (error) {
    outcomes.push(error.name);
  }
}
outcomes.push(typeof eval);
return outcomes;
