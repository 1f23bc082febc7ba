// Attempt: to pass numbers that JSON does not have, or that readers of JSON refuse.
// Contained: they arrive as null, or as the number that JSON has for them.
// expect: value [null,null,null,0,1.7976931348623157e308,5e-324]
const { value } = await servers.fake.echo({ value: [NaN, Infinity, -Infinity, -0, Number.MAX_VALUE, Number.MIN_VALUE] });
return value;
