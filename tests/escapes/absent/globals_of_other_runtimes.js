// Attempt: to use the globals of Node, Deno, Bun, browsers and the shell of the engine.
// Contained: none of them exists.
// expect: value []
return ['process', 'require', 'module', 'exports', '__dirname', '__filename', 'global', 'Buffer', 'setTimeout', 'setInterval',
  'setImmediate', 'queueMicrotask', 'structuredClone', 'fetch', 'XMLHttpRequest', 'WebSocket', 'EventSource', 'navigator',
  'window', 'self', 'document', 'location', 'Deno', 'Bun', 'std', 'os', 'bjson', 'scriptArgs', 'print', 'load', 'read',
  'readFile', '__loadScript', 'gc', 'quit', 'Intl', 'InternalError', 'DOMException', 'escape', 'unescape', 'crypto',
  'CallSite', 'AsyncFunction', 'GeneratorFunction', 'host', 'limits', 'pending', 'settle', 'begin']
  .filter((name) => name in globalThis);
