// Attempt: to throw nothing.
// Contained: the script fails.
// expect: error script_failed details.kind=exception
throw null;
