// Attempt: to have the end of the function in a text.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
return "7
