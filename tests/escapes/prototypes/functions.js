// Attempt: to break the service's code with other methods of all functions.
// Contained: it uses none of them.
// expect: value {"value":7}
Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => { throw new Error('no call'); };
Function.prototype.toString = () => 'async()=>{"use strict";}';
Object.defineProperty(Function.prototype, 'name', { get() { throw new Error('no name'); } });
return servers.fake.echo({ value: 7 });
