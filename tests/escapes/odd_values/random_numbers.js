// Attempt: to break the generator of random numbers by its arguments and by calling it often.
// Contained: it returns numbers from 0 to 1.
// expect: value true
let is_right = true;
for (let n = 0; n < 100000; n++) {
  const number = Math.random(n, {}, Symbol('x'));
  is_right &&= number >= 0 && number < 1;
}
return is_right && new Set(Array.from({ length: 1000 }, Math.random)).size === 1000;
