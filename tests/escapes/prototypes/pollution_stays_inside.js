// Attempt: to leave changed prototypes to the next script.
// Contained: each script has a world of its own: this program runs after its like, and finds nothing.
// expect: value [null,null,null]
const before = [Object.prototype.polluted ?? null, Array.prototype.polluted ?? null, globalThis.polluted ?? null];
Object.prototype.polluted = Array.prototype.polluted = globalThis.polluted = 'a trace';
return before;
