// SPDX-License-Identifier: MIT
// Drives a trace server with the library of its clients, and checks all answers.
//
//	node client.mjs http://127.0.0.1:8080/tsp/api < calls
//
// Each line of standard input is a call, [NAME, ARGUMENT...], of HttpTspClient, or ["rest", METHOD, PATH, BODY?]
// for what that has no method for. An argument {"query": {...}} becomes a Query. Each line of output is
// {status, text, model, problems}: the model is that of the library, and the problems are what the protocol's description
// (API.yaml) says about all answers of this call.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(import.meta.url);
const Ajv = require("ajv");
const yaml = require("js-yaml");
const JSONBig = require("json-bigint")({ useNativeBigInt: true });
const { HttpTspClient } = require("tsp-typescript-client/lib/protocol/http-tsp-client");
const { RestClient } = require("tsp-typescript-client/lib/protocol/rest-client");
const { Query } = require("tsp-typescript-client/lib/models/query/query");

console.log = console.error; // the library's complaints
const base = process.argv[2];
const api = yaml.load(readFileSync(new URL("API.yaml", import.meta.url), "utf8"));
// The description contradicts itself: these are texts or numbers, but "type: object"; and a whole number is "number" and "integer",
// which oneOf excludes.
for (const name of ["StyleValue", "MetadataValue"]) {
  const { oneOf } = api.components.schemas[name];
  api.components.schemas[name] = { anyOf: oneOf };
}

const ajv = new Ajv.default({ strict: false, allErrors: true });
ajv.addFormat("uuid", /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
ajv.addFormat("int32", { type: "number", validate: (n) => Number.isInteger(n) && Math.abs(n) < 2 ** 31 });
ajv.addFormat("int64", { type: "number", validate: (n) => Number.isInteger(n) && Math.abs(n) < 2 ** 63 });
ajv.addFormat("double", true);
ajv.addSchema({ components: api.components }, "api");

const routes = Object.keys(api.paths).map((path) => [
  new RegExp(`^${path.replace(/\{[^}]*\}/g, "[^/]+")}$`), path, path.split("{").length,
]).sort((a, b) => a[2] - b[2]); // "markerSets" before an output of that name

function schemaOf(method, url, status) {
  const target = url.slice(base.length).split("?")[0];
  const route = routes.find(([pattern, path]) => pattern.test(target) && api.paths[path][method]);
  const response = route && api.paths[route[1]][method].responses[status];
  // What the description does not foresee is an error with the usual body.
  return response ? response.content["application/json"].schema : { $ref: "#/components/schemas/ErrorResponse" };
}

const inApi = (schema) => JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/'));

let problems = [];

function check(method, url, response) {
  const type = response.headers.get("Content-Type");
  if (type !== "application/json") problems.push(`Content-Type ${type}`);
  const validate = ajv.compile(inApi(schemaOf(method, url, response.status)));
  if (!validate(JSON.parse(response.text)))
    problems.push(...validate.errors.slice(0, 20).map((e) => `${method} ${url}: ${e.instancePath} ${e.message}`));
  // Clients keep these in doubles.
  for (const [, name, number] of response.text.matchAll(/"(id|parentId|entryId|seriesId|nbEvents|size|index)": ?(-?\d+)/g))
    if (!Number.isSafeInteger(Number(number))) problems.push(`${name} ${number} is too large`);
}

const request = RestClient.httpRequest;
RestClient.httpRequest = async (req) => {
  const response = await request.call(RestClient, req);
  check(req.method, req.url, response);
  return response;
};

const client = new HttpTspClient(base);
const argument = (value) => (value && typeof value === "object" && value.query ? new Query(value.query) : value);

function call(name, ...args) {
  if (name !== "rest") return client[name](...args.map(argument));
  const [method, path, body] = args;
  return RestClient[method](base + path, body);
}

for await (const line of createInterface({ input: process.stdin })) {
  problems = [];
  const answer = await call(...JSONBig.parse(line));
  const model = answer.getModel();
  process.stdout.write(JSONBig.stringify({
    status: answer.getStatusCode(), ok: answer.isOk(), text: answer.getText(), model: model ?? null, problems,
  }) + "\n");
}
