// Attempt: to throw while an uncaught error is described.
// Contained: the script fails.
// expect: error script_failed details.kind=exception
class Trap extends Error {
  get name() { throw 1; }
  get message() { throw 2; }
  get stack() { throw 3; }
  get code() { throw 4; }
  toString() { throw 5; }
}
throw new Trap();
