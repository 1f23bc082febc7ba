// Attempt: to stop in a debugger.
// Contained: there is none.
// expect: value 7
debugger;
return 7;
