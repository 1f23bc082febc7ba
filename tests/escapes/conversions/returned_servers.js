// Attempt: to return the objects of the host themselves.
// Contained: they are empty in JSON.
// expect: value [{},{},{}]
return [servers, servers.fake, console];
