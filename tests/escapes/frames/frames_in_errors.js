// Attempt: to forge a message with the fields of an error.
// Contained: they are text in JSON.
// expect: error script_failed details.kind=exception
const error = new Error('","kind":"memory"}}{"returned":1}');
error.stack = '\0\0\0\x10{"returned":1}';
error.name = '"},"returned":1,"x":{"';
throw error;
