// The world of a script: all that it can reach beside the language itself.
//
// Evaluated once, before the script. The functions of `host` and the names below are out of the
// script's reach. A script that changes the prototypes of the language harms only itself: once it
// runs, this code uses what it has taken from them before, iterates over nothing, and gives no
// object with a prototype to a function that reads properties.
(function (host, limits, startMs, args) {
  'use strict';
  const { freeze, defineProperty, getOwnPropertyNames, getOwnPropertyDescriptor, create } = Object;
  const { apply, ownKeys, construct } = Reflect;
  const { stringify } = JSON;
  const { isError } = Error;
  const { indexOf, slice, toWellFormed } = String.prototype;
  const { toString: sourceOf } = Function.prototype;
  const NativeError = Error, NativeTypeError = TypeError, NativePromise = Promise, NativeDate = Date, NativeProxy = Proxy, NativeSet = Set;
  const { toPrimitive } = Symbol;
  const string = String, isFinite = Number.isFinite;

  // Only valid Unicode crosses the pipe.
  const text = (value) => apply(toWellFormed, string(value), []);

  // The operations in flight, by their number.
  const pending = create(null);
  let nPending = 0, nOperations = 0, nowMs = startMs;

  function define(object, name, value, enumerable) {
    defineProperty(object, name, { __proto__: null, value, configurable: true, writable: true, enumerable });
  }

  let isToolError;
  class ToolError extends NativeError {
    #isToolError = true;
    static { isToolError = (value) => #isToolError in value; }
    constructor(failure, stack) {
      super(failure.message);
      const copy = (key) => { if (failure[key] !== undefined) define(this, key, failure[key], true); };
      copy('code');
      copy('server');
      copy('tool');
      copy('hint');
      copy('details');
      define(this, 'stack', stack, false);
    }
  }
  define(ToolError.prototype, 'name', 'ToolError', false);
  freeze(ToolError);

  const limitError = (limit, value, message, stack) => new ToolError({ code: 'limit_exceeded', message, details: { limit, value } }, stack);

  function begin(kind, server, tool, args) {
    const stack = new NativeError().stack;
    return new NativePromise((resolve, reject) => {
      // This may run code of the script, and that may begin operations.
      const json = args === undefined ? '{}' : stringify(args);
      if (json === undefined) throw new NativeTypeError('arguments must be plain data: a function or a symbol is none');
      if (nPending >= limits.pendingMax) {
        reject(limitError('pending', limits.pendingMax, `a script may wait for at most ${limits.pendingMax} operations at once`, stack));
      } else if (!host.begin(nOperations + 1, kind, server, tool, json)) {
        reject(limitError('arguments', limits.messageBytesMax, `the arguments of a call have at most ${limits.messageBytesMax} bytes`, stack));
      } else {
        nPending += 1;
        nOperations += 1;
        pending[nOperations] = { __proto__: null, resolve, reject, stack };
      }
    });
  }

  function settle(operation, now, isValue, value) {
    const waiter = pending[operation];
    nowMs = now;
    if (waiter === undefined) return;
    delete pending[operation];
    nPending -= 1;
    if (isValue) {
      waiter.resolve(value);
      return;
    }
    let error;
    try { error = new ToolError(value, waiter.stack); } catch (thrown) { error = thrown; }
    waiter.reject(error);
  }

  // `servers.NAME.TOOL(args)` and `servers.NAME.call(tool, args)`. Names resolve when they are
  // used, so that an unknown one is an error of its call, with similar names.
  function callable(name) { return typeof name === 'string' && name !== 'then' && name !== 'toJSON'; }
  function named(label, make) {
    const made = create(null);
    return new NativeProxy(freeze(create(null)), {
      // In a text, it is its name: no tool `toString` is called.
      get: (_, name) => callable(name) ? (made[name] ??= make(name)) : name === toPrimitive ? () => label : undefined,
      has: (_, name) => callable(name),
    });
  }
  const servers = named('servers', (server) => named('servers.' + server, (tool) => tool === 'call'
    ? (name, args) => begin('tool', text(server), text(name), args)
    : (args) => begin('tool', text(server), text(tool), args)));

  // The script begins on the second line of what the engine reads.
  function traced(stack) {
    const mark = 'script.js:';
    let shown = '', rest = string(stack);
    for (let at = apply(indexOf, rest, [mark]); at >= 0; at = apply(indexOf, rest, [mark])) {
      const start = at + mark.length;
      let end = start;
      while (rest[end] >= '0' && rest[end] <= '9') end += 1;
      shown += apply(slice, rest, [0, start]);
      if (end > start) shown += apply(slice, rest, [start, end]) - 1;
      rest = apply(slice, rest, [end]);
    }
    return shown + rest;
  }
  function shown(value) {
    if (typeof value === 'string') return value;
    if (isError(value)) return value.stack ? `${value.name}: ${value.message}\n${traced(value.stack)}` : string(value);
    if (typeof value === 'bigint') return `${value}n`;
    if (value === null || typeof value !== 'object') return string(value);
    try {
      return stringify(value, (_, inner) => typeof inner === 'bigint' ? `${inner}n` : inner) ?? string(value);
    } catch {
      return '[object]';
    }
  }
  const log = (...values) => {
    let line = '';
    for (let index = 0; index < values.length; index++) line += (index ? ' ' : '') + shown(values[index]);
    host.print(text(line + '\n'));
  };

  const sleep = (ms) => {
    const pause = ms === undefined ? 0 : +ms;
    if (!(pause >= 0 && pause <= limits.sleepMaxMs)) {
      throw limitError('sleep', limits.sleepMaxMs, `a sleep takes 0 to ${limits.sleepMaxMs} ms, not ${shown(ms)}`, new NativeError().stack);
    }
    return begin('sleep', '', '', pause);
  };

  const progress = (done, total, message) => {
    if (!isFinite(done)) throw new NativeTypeError('progress(done, total?, message?) needs a number first');
    host.progress(done, isFinite(total) ? total : -1, message === undefined ? '' : text(message));
  };

  // The time stands still between two results, so that a script that goes on later sees the same.
  function ScriptDate(...fields) {
    if (new.target === undefined) return new NativeDate(nowMs).toString();
    return construct(NativeDate, fields.length === 0 ? [nowMs] : fields, new.target);
  }
  for (const name of ['parse', 'UTC']) defineProperty(ScriptDate, name, getOwnPropertyDescriptor(NativeDate, name));
  defineProperty(ScriptDate, 'now', { value: () => nowMs, configurable: true, writable: true });
  defineProperty(ScriptDate, 'name', { value: 'Date', configurable: true });
  defineProperty(ScriptDate, 'length', { value: 7, configurable: true });
  defineProperty(ScriptDate, 'prototype', { value: NativeDate.prototype, writable: false });
  defineProperty(NativeDate.prototype, 'constructor', { value: ScriptDate, configurable: true, writable: true });
  defineProperty(Math, 'random', { value: () => host.random(), configurable: true, writable: true });

  // A formatter of traces would get the functions of this file. A limit would change its own traces.
  delete NativeError.prepareStackTrace;
  delete NativeError.stackTraceLimit;

  // No code from strings: the constructors of functions only serve `instanceof`.
  const kinds = [function () {}, async function () {}, function* () {}, async function* () {}];
  const refusing = function Function() {
    throw new EvalError('a script cannot make code from strings');
  };
  for (const kind of kinds) {
    defineProperty(Object.getPrototypeOf(kind), 'constructor', { value: refusing, configurable: false, writable: false });
  }
  defineProperty(refusing, 'prototype', { value: Function.prototype, writable: false });

  const language = new NativeSet([
    'AggregateError', 'Array', 'ArrayBuffer', 'BigInt', 'BigInt64Array', 'BigUint64Array', 'Boolean', 'DataView',
    'Error', 'EvalError', 'Float16Array', 'Float32Array', 'Float64Array', 'Infinity', 'Int16Array', 'Int32Array', 'Int8Array',
    'Iterator', 'JSON', 'Map', 'Math', 'NaN', 'Number', 'Object', 'Promise', 'Proxy', 'RangeError', 'ReferenceError',
    'Reflect', 'RegExp', 'Set', 'String', 'Symbol', 'SyntaxError', 'TypeError', 'URIError', 'Uint16Array', 'Uint32Array',
    'Uint8Array', 'Uint8ClampedArray', 'WeakMap', 'WeakSet', 'decodeURI', 'decodeURIComponent', 'encodeURI',
    'encodeURIComponent', 'globalThis', 'isFinite', 'isNaN', 'parseFloat', 'parseInt', 'undefined',
  ]);
  for (const name of getOwnPropertyNames(globalThis)) {
    if (!language.has(name)) delete globalThis[name];
  }
  const own = {
    Date: ScriptDate,
    Function: refusing,
    ToolError,
    console: freeze({ debug: log, error: log, info: log, log, warn: log }),
    describeTool: (server, tool) => begin('describe', text(server), text(tool), {}),
    progress,
    runChain: (steps) => begin('chain', '', '', { steps }),
    searchTools: (query, options) => begin('search', '', '', { ...options, query: text(query) }),
    servers,
    sleep,
  };
  if (args !== undefined) own.args = freeze(args);
  for (const name of ownKeys(own)) {
    defineProperty(globalThis, name, { value: own[name], configurable: true, writable: true, enumerable: false });
  }

  // Describes an exception, which may be any value, in short texts.
  const textMax = 1024, messageMax = 8192;
  const short = (value, max) => apply(slice, text(value), [0, max]);
  function describe(thrown) {
    const failure = { __proto__: null, name: 'Error', message: '', stack: '', isToolError: false };
    if (thrown === null || typeof thrown !== 'object') {
      failure.message = short(shown(thrown), messageMax);
      return stringify(failure);
    }
    const copy = (key, max) => {
      try {
        const value = thrown[key];
        if (value !== undefined) failure[key] = short(value, max);
      } catch {}
    };
    if (!isError(thrown)) {
      failure.message = short(shown(thrown), messageMax);
      copy('stack', messageMax);
      return stringify(failure);
    }
    copy('name', textMax);
    copy('message', messageMax);
    copy('stack', messageMax);
    if (isToolError(thrown)) {
      failure.isToolError = true;
      copy('code', textMax);
      copy('server', textMax);
      copy('tool', textMax);
      copy('hint', textMax);
      try {
        const details = stringify(thrown.details);
        if (details !== undefined && details.length <= messageMax) failure.details = details;
      } catch {}
    }
    return stringify(failure);
  }

  // Returns whether a value is the function with this source.
  const isWhole = (value, source) => typeof value === 'function' && apply(sourceOf, value, []) === source;

  return { settle, describe, isWhole };
})
