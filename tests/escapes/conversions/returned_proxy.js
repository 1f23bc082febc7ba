// Attempt: to throw in a trap while the returned value is read.
// Contained: the script fails.
// expect: error script_failed details.kind=value
return new Proxy({}, { ownKeys() { throw new Error('a trap'); } });
