// Attempt: to return values that JSON omits, where a reader expects one.
// Contained: the value is null.
// expect: value [null,null,null,{}]
return [undefined, () => {}, Symbol('x'), { a: undefined, b: () => {} }];
