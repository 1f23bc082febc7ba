// Attempt: to keep the service busy with very many small messages.
// Contained: they are printed.
// expect: error script_failed details.kind=exception
for (let n = 0; n < 20000; n++) console.log('');
throw new Error('printed');
