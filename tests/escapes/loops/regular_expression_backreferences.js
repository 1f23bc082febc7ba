// Attempt: to keep the matcher busy with references and assertions.
// Contained: the script ends at its time limit.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
/^(?=(.*?.*?.*?.*?))\1(?:(x+x+)+)y(?<!z+)$/s.test('x'.repeat(5000));
