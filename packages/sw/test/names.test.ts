/** Other names for the same variables: the script does the same, and names repeat. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { repeatingNames } from "../shrink/names.ts";
import { bindingsOf } from "../shrink/scopes.ts";
import { edited } from "../shrink/syntax-tree.ts";

/** Every way to declare and to hide a variable that scripts have, each of which tells what it sees. */
const SCRIPT = `
const a = "a";
let b = "b", { length: c, toString: d = a } = a;
var told = [];
const tell = (...e) => told.push(e.map(String).join());
function f(g, [h, i = g] = [a], { j, k: l = i, ...m } = {}) {
  tell(g, h, i, j, l, Object.keys(m));
  var n = 1;
  if (g) { var o = n + 1; let n2 = o; const a = "inner"; tell(a, n2); }
  for (let p = 0; p < 2; p++) { let q = p; tell(p, q, (() => p)()); }
  for (const r of [a, b]) tell(r);
  for (const s in { a, b: 1 }) tell(s, a);
  return function t(u) { return u > 0 ? t(u - 1) : [n, o, a, typeof f]; };
}
tell(f("x", ["y"], { j: 1, z: 2 })(1));
tell(f()(0));
try { throw new Error("e"); } catch (v) { const { message } = v; tell(message); }
try { null.x; } catch { const v = b; tell(v); }
switch (b) { case "b": { const w = c; tell(w); } default: let x = d; tell(typeof x); }
class Y { static z = a; #p = b; constructor(q = c) { this.q = q; } get p() { return this.#p + a; } [a]() { return Y.z; } }
const Z = class Inner extends Y { me() { return Inner === Z; } };
tell(new Z().p, new Z(7).q, new Y().a(), new Z().me());
const object = { a, b, f: (a) => a, get c() { return c; }, [b]: a, async *g() { yield a; } };
tell(object.a, object.b, object.f(1), object.c, Object.keys(object));
tell(((a, { b: { c } } = { b: { c: a } }) => (b) => [a, b, c])(3)(4));
tell(typeof missing, typeof Math, [1, 2].map((e) => Math.max(e, told.length > 0 ? 1 : e)));
export { told as default, tell as said };
`;

async function run(script: string): Promise<{ default: string[]; said: unknown }> {
  return import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(script)}`);
}

test("whatever names variables get that hide none of each other, the script does the same", async () => {
  const expected = (await run(SCRIPT)).default;
  expect(expected.length).toBeGreaterThan(20);
  let hidden = 0;
  await fc.assert(
    fc.asyncProperty(fc.infiniteStream(fc.nat()), async (draws) => {
      const bindings = bindingsOf(SCRIPT);
      // Names of other variables, and few: as many as possible hide another one that is not used there.
      const names = [..."abcdefghijklmnopqrstuvwxyz", "told", "Math", "missing", ..."ABCDEFGHIJKLMNOPQRSTUVW"];
      for (const binding of bindings) {
        const free = names.filter(
          (name) => !binding.globals.has(name) && ![...binding.rivals].some((rival) => rival.name === name),
        );
        binding.name = free[draws.next().value! % Math.min(3, free.length)]!;
      }
      hidden += bindings.length - new Set(bindings.map(({ name }) => name)).size;
      const edits = bindings.flatMap(({ name, uses }) =>
        uses.map(({ start, end, prefix, suffix }) => ({ start, end, text: `${prefix}${name}${suffix}` })),
      );
      const renamed = await run(edited(SCRIPT, edits));
      expect([renamed.default, typeof renamed.said]).toEqual([expected, "function"]);
    }),
  );
  expect(hidden).toBeGreaterThan(0);
});

test("the names that are chosen change nothing either, and choosing again gives the same", async () => {
  const named = repeatingNames(SCRIPT);
  expect(named).not.toBe(SCRIPT);
  expect((await run(named)).default).toEqual((await run(SCRIPT)).default);
  expect(repeatingNames(SCRIPT)).toBe(named);
});

test("what is the same but for its names becomes the same", () => {
  const loop = (list: string, item: string): string =>
    `function(${list}){for(let ${item} of ${list})${item}.close();return ${list}}`;
  const named = repeatingNames(`use(${loop("a", "b")},${loop("a", "b")},${loop("c", "d")})`);
  const [first, second, third] = named.slice(4, -1).split(",");
  expect(third).toBe(first);
  expect(second).toBe(first);
});

test("a function in a block is refused: a sloppy script lets it out", () => {
  expect(() => bindingsOf("if (a) { function b() {} }")).toThrow();
});
