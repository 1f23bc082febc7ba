// Attempt: to delete a name of the scope.
// Contained: such code is refused.
// expect: error script_failed details.kind=syntax
delete servers;
