// Attempt: to find the prototypes that another script has changed.
// Contained: each script has a world of its own.
// expect: value [null,null,null]
return [Object.prototype.polluted ?? null, Array.prototype.polluted ?? null, globalThis.polluted ?? null];
