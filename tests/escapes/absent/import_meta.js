// Attempt: to read the address of the script's own file.
// Contained: a script is no module.
// expect: error script_failed details.kind=syntax
return import.meta.url;
