// Attempt: to throw a function whose text is large.
// Contained: the script fails.
// expect: error script_failed details.kind=exception
throw Object.assign(() => {}, { toString: () => 'x'.repeat(1e6), message: 'y'.repeat(1e6), code: 'internal' });
