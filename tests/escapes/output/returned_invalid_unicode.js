// Attempt: to return text that is no Unicode.
// Contained: it is the text of JSON, with escapes.
// expect: value [1,true]
const text = '\ud800';
const { value } = await servers.fake.echo({ value: `a${text}b`.toWellFormed() });
return [text.length, value.length === 3];
