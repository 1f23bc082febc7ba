// Attempt: to run forever in the replacer of JSON, which goes deeper with each level.
// Contained: the engine throws a RangeError.
// expect: error script_failed details.kind=exception
JSON.stringify({}, () => ({ deeper: 1 }));
