// Attempt: to hold the service with a call that is never answered.
// Contained: the script ends at its time limit, and the call is cancelled.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
await servers.fake.hold({ key: 'never released' });
