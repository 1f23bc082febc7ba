// Attempt: to run forever in getters.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
const trap = { get next() { return trap; } };
let walk = trap;
while (walk) walk = walk.next;
