// The world of a script: all that it can reach beside the language itself.
//
// Evaluated once, before the script. The functions of `host` and the names below are out of the
// script's reach. A script that changes the prototypes of the language harms only itself.
(function (host, limits, startMs, args) {
  'use strict';
  const { freeze, defineProperty, getOwnPropertyNames, getOwnPropertyDescriptor, create } = Object;
  const { ownKeys, construct } = Reflect;
  const { stringify } = JSON;
  const NativeError = Error, NativePromise = Promise, NativeDate = Date, NativeProxy = Proxy, NativeSet = Set;
  const { toWellFormed } = String.prototype;
  const { apply } = Reflect;
  const string = String, isFinite = Number.isFinite;

  // Only valid Unicode crosses the pipe.
  const text = (value) => apply(toWellFormed, string(value), []);

  // The operations in flight, by their number.
  const pending = create(null);
  let nPending = 0, nOperations = 0, nSleeps = 0, nowMs = startMs;

  class ToolError extends NativeError {
    constructor(failure, stack) {
      super(failure.message);
      for (const key of ['code', 'server', 'tool', 'hint', 'details']) {
        if (failure[key] !== undefined) this[key] = failure[key];
      }
      defineProperty(this, 'stack', { value: stack, configurable: true, writable: true });
    }
  }
  defineProperty(ToolError.prototype, 'name', { value: 'ToolError', configurable: true, writable: true });

  const limitError = (limit, value, message, stack) => new ToolError({ code: 'limit_exceeded', message, details: { limit, value } }, stack);

  function begin(kind, server, tool, args) {
    const stack = new NativeError().stack;
    return new NativePromise((resolve, reject) => {
      // This may run code of the script, and that may begin operations.
      const json = args === undefined ? '{}' : stringify(args);
      if (json === undefined) throw new TypeError('arguments must be plain data: a function or a symbol is none');
      if (nPending >= limits.pendingMax) {
        reject(limitError('pending', limits.pendingMax, `a script may wait for at most ${limits.pendingMax} operations at once`, stack));
      } else if (!host.begin(nOperations + 1, kind, server, tool, json)) {
        reject(limitError('arguments', limits.messageBytesMax, `the arguments of a call have at most ${limits.messageBytesMax} bytes`, stack));
      } else {
        nPending += 1;
        nOperations += 1;
        pending[nOperations] = { resolve, reject, stack };
      }
    });
  }

  function settle(operation, now, isValue, value) {
    const waiter = pending[operation];
    nowMs = now;
    if (waiter === undefined) return;
    delete pending[operation];
    nPending -= 1;
    if (isValue) waiter.resolve(value);
    else waiter.reject(new ToolError(value, waiter.stack));
  }

  // `servers.NAME.TOOL(args)` and `servers.NAME.call(tool, args)`. Names resolve when they are
  // used, so that an unknown one is an error of its call, with similar names.
  function callable(name) { return typeof name === 'string' && name !== 'then' && name !== 'toJSON'; }
  function named(make) {
    const made = create(null);
    return new NativeProxy(freeze(create(null)), {
      get: (_, name) => callable(name) ? (made[name] ??= make(name)) : undefined,
      has: (_, name) => callable(name),
    });
  }
  const servers = named((server) => named((tool) => tool === 'call'
    ? (name, args) => begin('tool', text(server), text(name), args)
    : (args) => begin('tool', text(server), text(tool), args)));

  // The script begins on the second line of what the engine reads.
  const traced = (stack) => string(stack).replace(/script\.js:(\d+)/g, (_, line) => `script.js:${line - 1}`);
  function shown(value) {
    if (typeof value === 'string') return value;
    if (value instanceof NativeError) return value.stack ? `${value.name}: ${value.message}\n${traced(value.stack)}` : string(value);
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
      throw new ToolError({ code: 'limit_exceeded', message: `a sleep takes 0 to ${limits.sleepMaxMs} ms, not ${shown(ms)}`, details: { limit: 'sleep', value: limits.sleepMaxMs } }, new NativeError().stack);
    }
    return begin('sleep', '', '', pause);
  };

  const progress = (done, total, message) => {
    if (!isFinite(done)) throw new TypeError('progress(done, total?, message?) needs a number first');
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

  // Describes an exception, which may be any value.
  function describe(thrown) {
    const failure = { name: 'Error', message: '', stack: '' };
    if (thrown === null || typeof thrown !== 'object') {
      failure.message = shown(thrown);
      return stringify(failure);
    }
    for (const key of ['name', 'message', 'stack', 'code', 'server', 'tool', 'hint']) {
      try {
        const value = thrown[key];
        if (value !== undefined) failure[key] = string(value);
      } catch {}
    }
    if (!(thrown instanceof NativeError)) {
      failure.name = 'Error';
      failure.message = shown(thrown);
    } else if (thrown instanceof ToolError) {
      try { failure.details = thrown.details; } catch {}
    }
    failure.isToolError = thrown instanceof ToolError;
    try { return stringify(failure); } catch { return '{"name":"Error","message":"the script threw an object that cannot be shown","stack":""}'; }
  }

  return { settle, describe };
})
