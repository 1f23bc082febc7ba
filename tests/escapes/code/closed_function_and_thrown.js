// Attempt: to end the function, and to throw outside of it.
// Contained: the script fails.
// expect: error script_failed details.kind=syntax
}); throw new Error('outside'); (async()=>{
