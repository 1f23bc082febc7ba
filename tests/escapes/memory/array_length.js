// Attempt: to take memory with the length of an array, and with its last element.
// Contained: an array with holes takes none.
// expect: value [4294967295,1]
const list = [];
list[2 ** 32 - 2] = 'last';
return [list.length, Object.keys(list).length];
