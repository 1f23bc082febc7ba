// Attempt: to run forever in the reviver of JSON, which grows what is read.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
JSON.parse('[1,2]', function (key, value) { for (;;) {} });
