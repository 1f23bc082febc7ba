// Attempt: to have the service's code believe that every name is allowed.
// Contained: it keeps nothing in maps and sets that it asks later.
// expect: value ["undefined",7]
Set.prototype.has = Map.prototype.has = WeakMap.prototype.has = WeakSet.prototype.has = () => true;
Map.prototype.get = WeakMap.prototype.get = () => globalThis;
Set.prototype.add = Map.prototype.set = () => { throw new Error('no entry'); };
globalThis.Set = globalThis.Map = null;
return [typeof eval, (await servers.fake.echo({ value: 7 })).value];
