// Attempt: to give the class of tool errors another parent, whose constructor throws or returns a success.
// Contained: the class is frozen, and a failed call still fails with it.
// expect: value [false,false,"execution_failed"]
const forged = function () { return { value: 'success' }; };
const outcomes = [Reflect.setPrototypeOf(ToolError, forged), Reflect.defineProperty(ToolError, Symbol.hasInstance, { value: () => true })];
try {
  outcomes.push(await servers.fake.rpc_error({ code: -32000, message: 'on purpose' }));
} catch (error) {
  outcomes.push(error.code);
}
return outcomes;
