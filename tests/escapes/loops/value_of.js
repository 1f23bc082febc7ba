// Attempt: to run forever in a conversion to a number.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
return +{ valueOf() { for (;;) {} } };
