// Attempt: to change the meaning of names with an object.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
with ({ servers: null }) { return servers; }
