// Attempt: to run forever over matches, by setting back their position.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
const pattern = /a/g;
while (pattern.exec('aaa')) pattern.lastIndex = 0;
