// Attempt: to hide code in comments that only scripts of web pages have.
// Contained: they are comments or errors, and change nothing of the function.
// expect: value 7
let value = 7;
<!-- value = 8; }); throw 1; (async()=>{
return value;
