// Attempt: to wait in the default of a parameter.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
async function wait(time = await sleep(1)) { return time; }
return wait();
