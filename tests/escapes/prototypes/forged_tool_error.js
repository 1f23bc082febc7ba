// Attempt: to end with an error that pretends to be one of the service, with a code of the script.
// Contained: a script may only name a failure of its own: it is an error either way.
// expect: error timeout
throw new ToolError({ code: 'timeout', message: 'forged', server: 'fake', tool: 'echo' });
