// Attempt: to leave strict mode.
// Contained: the script is strict, and so are its functions.
// expect: value [true,true,"ReferenceError","TypeError"]
"use strict";
const outcomes = [(function () { return this === undefined; })(), (() => { 'use sloppy'; return (function () { return !this; })(); })()];
for (const attempt of [() => { undeclared = 1; }, () => { Object.freeze([]).push(1); }]) {
  try {
    attempt();
    outcomes.push('sloppy');
  } catch (error) {
    outcomes.push(error.name);
  }
}
return outcomes;
