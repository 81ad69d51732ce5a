/** The steps that make the workers' scripts small: what comes out does the same. */
import { readdir, readFile } from "node:fs/promises";
import * as fc from "fast-check";
import { parseSync } from "vite";
import { expect, test } from "vitest";
import { arrowFunctions } from "../shrink/arrow-functions.ts";
import { minified } from "../shrink/index.ts";
import { INTERNAL_NAMES } from "../shrink/internal-names.ts";
import { plainOperators } from "../shrink/plain-operators.ts";
import { privateLocals } from "../shrink/private-locals.ts";
import { walk, type Node } from "../shrink/syntax-tree.ts";
import { knownStatuses, terseErrors } from "../shrink/terse-errors.ts";
import { unsetOptions } from "../shrink/unset-options.ts";

/** The default export of a module. */
async function load(script: string): Promise<any> {
  return (await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(script)}`)).default;
}

const STACK = `
const stacks = (...parameters) => new Stack(...parameters);
export default stacks;
class Stack {
  name = "stack";
  size;
  #items = [];
  #max;
  #onFull = () => this.#items.push(this.name);
  constructor({ max }, ...first) {
    this.#max = max;
    const items = first;
    for (const item of items) this.push(item);
  }
  get length() { return this.#items.length; }
  push(item) {
    if (this.#isFull()) return this.#onFull();
    this.size = this.#items.push({ item, max: this.#max });
    return this.size;
  }
  async *drain() {
    while (this.#items.length > 0) yield await this.#pop();
  }
  async #pop() { return this.#items.pop()?.item; }
  #isFull() { return this.#items.length >= this.#max; }
}`;

test("a class without its private members does the same, minified too", async () => {
  const scripts = [STACK, privateLocals(STACK), await minified(privateLocals(STACK))];
  expect(scripts.map((script) => script.includes("#"))).toEqual([true, false, false]);
  const makers = await Promise.all(scripts.map(load));
  await fc.assert(
    fc.asyncProperty(fc.nat(5), fc.array(fc.nat()), fc.array(fc.nat()), async (max, first, later) => {
      const told = await Promise.all(
        makers.map(async (stack) => {
          const [one, other] = [stack({ max }, ...first), stack({ max: 1 })];
          const pushed = later.map((item) => [one.push(item), one.length, one.size, other.length]);
          const drained = [];
          for await (const item of one.drain()) drained.push(item);
          return { pushed, drained, name: one.name };
        }),
      );
      expect(told[1]).toEqual(told[0]);
      expect(told[2]).toEqual(told[0]);
    }),
  );
});

const CALLER = `
const state = (name) => name;
export default (...parameters) => new Caller(...parameters).all();
class Caller {
  #early;
  #late;
  #seen = [];
  constructor(state, { name = "none" } = {}) {
    const late = state.map((name) => name + "!");
    this.#early = late.length;
    this.#note();
    this.#late = { state, name, late };
    this.#note();
  }
  all() { return JSON.stringify([this.#early, this.#late, this.#seen]); }
  #note() { this.#seen.push(state(this.#late)); }
}`;

test("a constructor that calls methods and has names of its own for what they mean otherwise does the same", async () => {
  for (const script of [CALLER, privateLocals(CALLER), await minified(privateLocals(CALLER))]) {
    const all = await load(script);
    expect(all(["a", "b"], { name: "c" })).toBe(
      '[2,{"state":["a","b"],"name":"c","late":["a!","b!"]},[null,{"state":["a","b"],"name":"c","late":["a!","b!"]}]]',
    );
    expect(all([])).toBe('[0,{"state":[],"name":"none","late":[]},[null,{"state":[],"name":"none","late":[]}]]');
  }
});

test.each([
  ["a constructor that returns", "class A { #n; constructor(n) { if (n) return; this.#n = n; } }"],
  ["a static member", "class A { static #n = 1; }"],
  ["a private accessor", "class A { get #n() { return 1; } }"],
  ["a look into another instance", "class A { #n; same(other) { return other.#n === this.#n; } }"],
  ["a function with a `this` of its own", "class A { #n; f() { return function () { return this.n; }; } }"],
  ["a question for its instances", "class A { #n; } export const is = (a) => a instanceof A;"],
])("%s is refused, because it would not mean the same", (_, script) => {
  expect(() => privateLocals(script)).toThrow();
});

test("a class that extends another is left as it is", () => {
  const script = "class A extends Error { #n = 1; get n() { return this.#n; } }";
  expect(privateLocals(script)).toBe(script);
});

test("options that a file does without are left out, their defaults are not", () => {
  const script = [
    "const { delta, share = none, range } = options;",
    "const { share: given } = { ...options, store: made(), delta };",
    "await options.ports.store?.purge(key).share;",
    "read({ share, delta, store });",
  ].join("\n");
  expect(unsetOptions(script, ["share", "store"]).split("\n")).toEqual([
    "const {delta,range} = options, share = none;",
    "const {} = {...options,delta}, given = void 0;",
    "await (void 0);",
    "read({delta});",
  ]);
});

test.each([
  ["taken apart by a parameter", "const read = ({ delta, share }) => share;"],
  ["set where nobody should set it", "read({ delta, share });"],
])("an option that is %s is not left out unnoticed", (_, script) => {
  expect(() => unsetOptions(script, ["share"], ["share"])).toThrow();
});

test("errors lose their words and keep code, details, cause, and messages from elsewhere", () => {
  const script = [
    'new AgaroseError("A", `needs ${k} chunks`, { k });',
    'new AgaroseError("B", "cut " + (why ?? "short"), { why }, cause);',
    "new AgaroseError(told.code, told.message, told.details);",
  ].join("\n");
  expect(terseErrors(script).split("\n")).toEqual([
    'new AgaroseError("A", "", { k });',
    'new AgaroseError("B", "", { why }, cause);',
    "new AgaroseError(told.code, told.message, told.details);",
  ]);
  expect(() => terseErrors('new OtherError("A", "words")')).toThrow();
});

test("errors whose code says all lose their details too, and all are of one class", () => {
  const script = [
    'new AgaroseError("SOURCE_FAILED", `answered ${status}`, { status }, cause);',
    'new AgaroseError(status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED", "no", { status });',
    'new AgaroseError(gone ? "OBJECT_NOT_FOUND" : "SOURCE_FAILED", "no", { status });',
    'new AgaroseError("MANIFEST_INVALID", `manifest ${problem}`, details, cause);',
    'throw codecError("INTERNAL", "failed", { status });',
  ].join("\n");
  expect(terseErrors(script).split("\n")).toEqual([
    'new AgaroseError("SOURCE_FAILED");',
    'new AgaroseError(status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED");',
    'new AgaroseError(gone ? "OBJECT_NOT_FOUND" : "SOURCE_FAILED", "", { status });',
    'new AgaroseError("MANIFEST_INVALID");',
    'throw new AgaroseError("INTERNAL", "", { status });',
  ]);
});

test("the table of statuses has the codes that the script names", () => {
  const table = "const STATUS = { KEY_INVALID: 400, BUSY: 503, READ_TIMEOUT: 504 };";
  expect(knownStatuses(`${table} fail("BUSY"); if (code === "KEY_INVALID") fail(code);`)).toMatch(
    /^const STATUS = \{ KEY_INVALID: 400, BUSY: 503 \};/,
  );
  expect(() => knownStatuses('fail("BUSY")')).toThrow();
});

/** Files and the declarations in them whose fields are read by others than the worker: as JSON, as messages, by the browser. */
const TOLD: Readonly<Record<string, readonly string[]>> = {
  "../../core/src/format/manifest.ts": ["Code", "Manifest"],
  "../../core/src/format/bundle.ts": ["Plan", "PlanPeer", "PlanRegion", "SignedChunks"],
  "../../core/src/read/read-report.ts": ["RequestRecord"],
  "../../core/src/ports.ts": ["FetchInit", "FetchedResponse"],
  "../src/config.ts": ["ClientConfig", "ClientConfigInput", "Endpoint"],
  "../src/worker/install.ts": ["WorkerOptions"],
  "../src/worker/life-cycle.ts": ["WorkerMessage"],
  "../src/events/read-events.ts": ["ReadStartEvent", "PlanEvent", "RequestEvent", "ReadEndEvent"],
  "../src/client/telemetry.ts": ["TelemetryReport"],
  "../src/worker/worker-scope.ts": ["WorkerScope", "InstallEvent", "WorkerFetchEvent", "WorkerMessageEvent"],
};

test.each(Object.entries(TOLD))("fields of %s that others read keep their names", async (file, declarations) => {
  const { program } = parseSync(file, await readFile(new URL(file, import.meta.url), "utf8"));
  const names = new Map<string, string[]>();
  walk(program as unknown as Node, (node) => {
    if (node.type !== "TSInterfaceDeclaration" && node.type !== "TSTypeAliasDeclaration") return;
    const fields: string[] = [];
    walk(node, ({ type, key }) => {
      if (type === "TSPropertySignature" || type === "TSMethodSignature") fields.push(key.name);
    });
    names.set(node["id"].name, fields);
  });
  const told = declarations.map((name) => names.get(name));
  expect(told.every((fields) => fields !== undefined && (fields.length > 0 || file.includes("read-events")))).toBe(
    true,
  );
  expect(told.flat().filter((name) => INTERNAL_NAMES.test(name!))).toEqual([]);
});

test("no internal name is asked for as a text, which would stay as it is", async () => {
  const folders = ["../src/", "../../core/src/", "../../ec-wasm/js/"].map((folder) => new URL(folder, import.meta.url));
  const files = await Promise.all(
    folders.map(async (folder) => {
      const names = (await readdir(folder)).filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
      return Promise.all(names.map((name) => readFile(new URL(name, folder), "utf8")));
    }),
  );
  const asked = files.flat().flatMap((file) => [...file.matchAll(/"(\w+)" in /g)].map(([, name]) => name!));
  expect(asked).toContain("url");
  expect(asked.filter((name) => INTERNAL_NAMES.test(name))).toEqual([]);
});

test("no internal name is one of the platform's", () => {
  const platform = [
    Object,
    Function,
    Array,
    String,
    Number,
    RegExp,
    Date,
    Error,
    Map,
    Set,
    Promise,
    Uint8Array,
    DataView,
  ]
    .concat([ArrayBuffer, Response, Request, Headers, Blob, URL, URLSearchParams, TextEncoder, TextDecoder] as never)
    .concat([ReadableStream, ReadableStreamBYOBReader, ReadableStreamDefaultController, TransformStream] as never)
    .concat([ReadableStreamDefaultReader, DecompressionStream, BroadcastChannel, DOMException] as never)
    .concat([AbortController, AbortSignal, WebAssembly.Instance, WebAssembly.Memory] as never);
  const objects = [JSON, Math, WebAssembly, crypto, crypto.subtle, performance, new Map().values(), globalThis];
  const names = [...platform.flatMap((type) => [type, type.prototype]), ...objects].flatMap((object: object) => {
    const parent = Object.getPrototypeOf(object) as object | null;
    return [...Object.getOwnPropertyNames(object), ...(parent ? Object.getOwnPropertyNames(parent) : [])];
  });
  expect(names).toEqual(expect.arrayContaining(["subtle", "getReader", "throwIfAborted", "toSorted", "instantiate"]));
  expect(names.filter((name) => INTERNAL_NAMES.test(name))).toEqual([]);
});

const FUNCTIONS = `var told=[];tell(early(2),later.name);function tell(...a){told.push(a.join())}
function early(a,{b=1}={}){return inner(a)+b;function inner(a){if(a>0)return inner(a-1);return nested();function nested(){return 10}}}
async function later(a){await a;return tell("later"),a}async function plain({a}){return a}function object(){return{a:1}}
function sequence(a){return tell(a),a}function*generator(){yield 1}function self(){return this===undefined}function all(){return arguments.length}
function Made(){this.a=1}function target(){return new.target}function empty(){}function around(){return class{a=1;b(){return this.a}}}
function lexical(){return(()=>this)()}
if(told.length>0){tell(block());function block(){return"block"}}
tell(await later(3),await plain({a:4}),object().a,sequence(5),[...generator()],self(),all(1,2),new Made().a,target(),empty(),new(around())().b(),lexical());
for(let a of[1])if(a)tell("a");else tell("b");
export{told as default}`;

test("functions that are arrows do the same, and those stay that cannot be", async () => {
  const arrows = arrowFunctions(FUNCTIONS);
  expect(await load(arrows)).toEqual(await load(FUNCTIONS));
  expect([...arrows.matchAll(/function(?:\*| )(\w+)/g)].map(([, name]) => name)).toEqual([
    "generator",
    "self",
    "all",
    "Made",
    "target",
    "lexical",
  ]);
  expect(arrowFunctions(arrows)).toBe(arrows);
});

test("declarations that functions stood between become one, and are made in the same order", async () => {
  const script = `var a=[1];function f(){return a}var{length:b}=f(),c=b;function g(){return d}var d=c+1;a.push(g());let e=3;export default[...a,b,c,d,e]`;
  const joined = arrowFunctions(script);
  expect(joined.match(/var/g)).toHaveLength(1);
  expect(await load(joined)).toEqual(await load(script));
});

test("plain operators count as Number does, and nothing is what it was", async () => {
  const script = `const count=async(a,b)=>{let c=await void 0;return c===void 0?[Number(a)-Number(b),Number(a?.length),void 0]:Number("x")+1};export default count`;
  const plain = plainOperators(script);
  expect(plain).not.toMatch(/Number|void|await/);
  const [before, after] = await Promise.all([script, plain].map(load));
  const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constantFrom(null, undefined, "7", " 1e3 ", ""));
  await fc.assert(
    fc.asyncProperty(value, value, async (a, b) => void expect(await after(a, b)).toEqual(await before(a, b))),
  );
});
