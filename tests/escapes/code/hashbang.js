// Attempt: to have the first line read as the name of a program.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
#!/bin/sh
return 7;
