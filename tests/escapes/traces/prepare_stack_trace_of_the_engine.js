// Attempt: to have a formatter of traces throw, call and loop while the engine makes an error.
// Contained: the engine calls no formatter of a script.
// expect: value ["TypeError","ToolError"]
Error.prepareStackTrace = () => { for (;;) {} };
Object.defineProperty(Error, 'prepareStackTrace', { get() { return () => { for (;;) {} }; } });
const outcomes = [];
try { null.x; } catch (error) { outcomes.push(error.name); }
try { await servers.fake.rpc_error({ code: -32000, message: 'on purpose' }); } catch (error) { outcomes.push(error.name); }
return outcomes;
