// Attempt: to return a promise of the script that settles twice, with itself, and throws.
// Contained: the first outcome counts.
// expect: value 1
return { then(resolve, reject) { resolve(1); reject(2); resolve(3); throw 4; } };
