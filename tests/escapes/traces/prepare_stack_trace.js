// Attempt: to get the functions of the service's code from the frames that a formatter of traces receives.
// Contained: the engine calls no formatter of a script.
// expect: value []
const reached = [];
Error.prepareStackTrace = (error, frames) => {
  for (const frame of frames) reached.push(frame.getFileName?.(), frame.getFunctionName?.(), typeof frame.getFunction?.());
  return 'formatted';
};
await servers.fake.echo({ value: 1 });
await servers.fake.rpc_error({ code: -32000, message: 'on purpose' }).catch((error) => String(error.stack));
try { sleep(-1); } catch (error) { String(error.stack); }
try { null.x; } catch (error) { String(error.stack); }
String(new Error().stack);
return reached;
