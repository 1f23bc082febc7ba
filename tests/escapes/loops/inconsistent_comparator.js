// Attempt: to confuse sorting with a comparator that contradicts itself.
// Contained: it ends.
// expect: value 1000
const list = Array.from({ length: 1000 }, (_, n) => n);
let n = 0;
list.sort(() => (n++ % 3) - 1);
return new Set(list).size;
