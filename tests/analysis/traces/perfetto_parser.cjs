// Perfetto's own parser, compiled to WebAssembly, in Node: stands in for the web worker that its user interface starts.
// Arguments: the directory of the interface, a file of requests, a file for the replies (both streams of TraceProcessorRpc).
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [home, requests, replies] = process.argv.slice(2);
const out = fs.openSync(replies, "w");
const worker = {
  console: { log() {}, warn() {}, error() {}, info() {} },
  setTimeout, clearTimeout, TextDecoder, TextEncoder, URL, performance,
  location: { href: "http://localhost/engine_bundle.js" },
  importScripts() {},
  WorkerGlobalScope: function () {},
  XMLHttpRequest: class {
    open(_method, name) {
      this.name = path.basename(name);
    }
    send() {
      this.response = fs.readFileSync(path.join(home, this.name));
    }
  },
};
worker.self = worker.globalThis = worker;
const context = vm.createContext(worker);
try {
  vm.runInContext(fs.readFileSync(path.join(home, "engine_bundle.js"), "utf8"), context);
} catch (error) {
  console.error(String(error).slice(0, 2000));
  process.exit(1);
}

const port = { postMessage: (reply) => fs.writeSync(out, Buffer.from(reply)) };
worker.onmessage({ data: port });

setTimeout(() => {
  const inside = vm.runInContext("(bytes) => new Uint8Array(bytes)", context); // it asks for arrays of its own world
  try {
    port.onmessage({ data: inside(fs.readFileSync(requests)) });
  } catch (error) {
    console.error(String(error).slice(0, 2000));
    process.exitCode = 1;
  }
}, 0);
