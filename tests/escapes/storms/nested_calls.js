// Attempt: to have more operations in flight than allowed, by beginning some while the arguments of another are read.
// Contained: the limit holds, and the script gets its failure.
// expect: value ["pending","pending"]
// max_tool_calls: 1
const limits = [];
const note = (error) => { if (error.details?.limit === 'pending') limits.push('pending'); };
for (let n = 0; n < 4095; n++) sleep(30000);
const nested = { toJSON() { sleep(30000).catch(note); sleep(30000).catch(note); return {}; } };
await servers.fake.echo(nested).catch(note);
return limits;
