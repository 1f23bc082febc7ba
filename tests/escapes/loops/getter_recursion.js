// Attempt: to overflow the stack with a getter that reads itself.
// Contained: the engine throws a RangeError.
// expect: error script_failed details.kind=exception
const trap = { get self() { return this.self; } };
return trap.self;
