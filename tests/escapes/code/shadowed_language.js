// Attempt: to replace the names of the language by declarations, before the end of the script is reported.
// Contained: they are names of the script alone.
// expect: error script_failed details.kind=exception
const JSON = null, Object = null, Error = null, undefined = 5, Promise = null;
throw { message: 'a plain object' };
