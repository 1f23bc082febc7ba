// Attempt: to have the end of the function in a comment.
// Contained: the comment ends with its line.
// expect: value 7
return 7; // }); (async()=>{
