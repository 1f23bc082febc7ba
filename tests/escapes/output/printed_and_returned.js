// Attempt: to stay below the limit with each of two halves.
// Contained: both count together.
// expect: error limit_exceeded details.limit=output
for (let n = 0; n < 6; n++) console.log('x'.repeat(100000));
return 'x'.repeat(600000);
