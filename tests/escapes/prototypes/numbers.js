// Attempt: to have odd numbers pass the checks of `sleep` and `progress`.
// Contained: they are refused.
// expect: value ["TypeError","limit_exceeded","limit_exceeded"]
Number.isFinite = () => true;
globalThis.isFinite = () => true;
Number.prototype.valueOf = () => 5;
globalThis.NaN;
const outcomes = [];
for (const attempt of [() => progress(NaN), () => sleep(NaN), () => sleep(-Infinity)]) {
  try {
    await attempt();
    outcomes.push('done');
  } catch (error) {
    outcomes.push(error.code ?? error.name);
  }
}
return outcomes;
