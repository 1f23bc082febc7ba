// Attempt: to end without an end: the returned promise of the script settles never.
// Contained: the script fails at once, because nothing can settle it.
// expect: error script_failed details.kind=stuck
return { then() {} };
