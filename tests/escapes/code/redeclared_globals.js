// Attempt: to replace the names of the host by declarations.
// Contained: they are names of the script alone.
// expect: value [1,2,"function"]
var servers = 1;
let console = 2;
function sleep() {}
return [servers, console, typeof sleep];
