// Attempt: to send and to return halves of surrogate pairs, which strict readers of JSON refuse.
// Contained: each is the replacement character.
// expect: value ["\ufffd","\ufffdx","😀"]
const { value } = await servers.fake.echo({ value: '\ud800' });
return [value, '\udc00x', '\ud83d\ude00'];
