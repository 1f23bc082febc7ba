// Attempt: to import a module with a declaration.
// Contained: a script is the body of a function.
// expect: error script_failed details.kind=syntax
import fs from 'fs';
return fs.readFileSync('/etc/passwd', 'utf8');
