// Attempt: to throw an object that cannot be read at all.
// Contained: the script fails.
// expect: error script_failed details.kind=exception
const { proxy, revoke } = Proxy.revocable(new Error('never read'), {});
revoke();
throw proxy;
