// A module that Node.js loads before a server. When the server is about to listen, the module creates the
// file `$GATE/ready`, and waits for the file `$GATE/open`.

const { existsSync, writeFileSync } = require('node:fs');
const { Server } = require('node:net');
const { join } = require('node:path');

const gate = process.env.GATE;
const { listen } = Server.prototype;

Server.prototype.listen = function (...args) {
  const listenOnceOpen = () => {
    if (existsSync(join(gate, 'open'))) listen.apply(this, args);
    else setTimeout(listenOnceOpen, 1);
  };
  writeFileSync(join(gate, 'ready'), '');
  listenOnceOpen();
  return this;
};
