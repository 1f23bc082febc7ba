// Attempt: to keep the matcher busy with nested repetitions.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
/^(a+)+$/.test('a'.repeat(40) + 'b');
