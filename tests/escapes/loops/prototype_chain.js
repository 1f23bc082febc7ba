// Attempt: to make each access slow with a long chain of prototypes.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
let chain = {};
for (let n = 0; n < 20000; n++) chain = Object.create(chain);
for (;;) chain.x;
