// Attempt: to overflow the stack.
// Contained: the engine throws a RangeError, which the script may catch.
// expect: value "RangeError"
const deep = () => deep() + 1;
try {
  deep();
} catch (error) {
  return error.name;
}
