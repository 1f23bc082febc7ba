// Attempt: to run forever in traps of proxies that are targets of each other.
// Contained: the script ends at its time limit, or fails with a RangeError.
// expect: error timeout details.limit=timeout_ms
// timeout_ms: 300
const trap = new Proxy({}, { has: () => true, get(target, key, receiver) { try { return receiver[key]; } catch { return receiver; } } });
for (;;) trap.x.y;
