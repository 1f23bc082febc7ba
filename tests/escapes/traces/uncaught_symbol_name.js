// Attempt: to end with an error whose name and message are symbols.
// Contained: the script fails.
// expect: error script_failed details.kind=exception
throw Object.assign(new Error(), { name: Symbol('name'), message: Symbol('message'), stack: Symbol('stack') });
