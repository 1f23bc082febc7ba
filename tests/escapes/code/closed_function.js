// Attempt: to end the function that contains the script, and to go on outside of it.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
}); globalThis.outside = this; (async()=>{ return typeof globalThis.outside;
