// Attempt: to end the function, and to change what the service compares the code with.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
}); Function.prototype.toString = () => { throw 1; }; Reflect.apply = () => true; (async()=>{"use strict"; return 'outside';
