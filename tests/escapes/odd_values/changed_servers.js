// Attempt: to replace tools by functions of the script, or to remove them.
// Contained: the objects of servers do not change.
// expect: value [false,false,false,false,false,7]
const forged = () => ({ value: 'forged' });
const outcomes = [
  Reflect.set(servers, 'fake', { echo: forged }), Reflect.set(servers.fake, 'echo', forged), Reflect.deleteProperty(servers, 'fake') && Reflect.has(servers, 'fake') === false,
  Reflect.defineProperty(servers.fake, 'echo', { value: forged }), Reflect.setPrototypeOf(servers, { fake: null }),
];
outcomes.push((await servers.fake.echo({ value: 7 })).value);
return outcomes;
