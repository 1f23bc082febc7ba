// Attempt: to throw while the returned promise of the script is read.
// Contained: the script fails.
// expect: error script_failed details.kind=exception
return { get then() { throw new RangeError('a getter'); } };
