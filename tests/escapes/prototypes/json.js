// Attempt: to change arguments and results on their way with another `JSON`.
// Contained: the service's code has the real one.
// expect: value {"value":[7]}
JSON.stringify = () => '{"value":"forged"}';
JSON.parse = () => 'forged';
globalThis.JSON = null;
return servers.fake.echo({ value: [7] });
