// Attempt: to wait where no async function is.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
function plain() { await sleep(1); }
return plain();
