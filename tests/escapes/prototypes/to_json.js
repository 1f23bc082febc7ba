// Attempt: to change a failure on its way out with `toJSON` of all prototypes.
// Contained: arguments and the returned value of the script change, and nothing else.
// expect: value {"value":"changed"}
Object.prototype.toJSON = function () { return { value: 'changed' }; };
String.prototype.toJSON = Number.prototype.toJSON = () => 'never used';
const result = await servers.fake.echo({ anything: 1 });
delete Object.prototype.toJSON;
return result;
