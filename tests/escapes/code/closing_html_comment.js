// Attempt: to hide the end of the function in a comment of web pages.
// Contained: it is a comment.
// expect: value 7
return 7;
--> }); throw 1; (async()=>{
