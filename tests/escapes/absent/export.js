// Attempt: to export a name, so that the script is read as a module.
// Contained: a script is the body of a function.
// expect: error script_failed details.kind=syntax
export const value = 1;
