// Attempt: to read a private name of the host's classes.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
return servers.#isToolError;
