// Attempt: to throw while the returned value is read.
// Contained: the script fails, with its line.
// expect: error script_failed details.kind=value
return { get value() { throw new RangeError('a getter'); } };
