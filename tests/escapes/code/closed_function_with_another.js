// Attempt: to end the function, and to have another kind of function run in its place.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
}); (function* () { yield 'outside';
