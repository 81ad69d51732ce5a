/** Other spellings of the same script: it does the same, and the one that is chosen is smaller. */
import { deflateRawSync } from "node:zlib";
import { seededRandom } from "@agarose/solver";
import * as fc from "fast-check";
import { minify } from "vite";
import { expect, test } from "vitest";
import { searched } from "../shrink/search.ts";
import { Spellings } from "../shrink/spellings.ts";

/** Everything that may be spelled otherwise, beside what may not; each part tells what it sees. */
const SCRIPT = `
let told = [], tell = (...e) => told.push(e.map(String).join());
let a = 1, b = new Map, c = () => a, d = a + 1, e = tell("now"), f = d + 1, [g] = [f], h = [a, f], i;
function first() { return typeof second() + a; let j = 2; function inner() { return j + k; } var k; }
tell(first(), i, h, g, e);
function second() { if (a === 1) return third; var l = inner(); return l; function inner() { return "i"; } }
for (let m of [1, 2]) if (m < 2) tell("<", m); else tell(">=", m);
function third() {}
async function fourth(n = 0) { for (; n < 2; n++); return n }
await fourth().then(tell);
let o = { a, b: b.size, c, get d() { return d; }, e() { return this.a; }, ...{ a: "late" }, f: tell("f"), g: tell("g"), h: 0 };
tell(o.a, o.b, o.c(), o.d, o.e(), o.h, o.inner.length);
let { a: p, b: q = 1, c: r, ...s } = o, { x: t = p, y: u = t, z = () => "z" } = o;
tell(p, q, r(), Object.keys(s).toSorted(), t, u, z());
tell(((v, { hidden: w, shown, hidden2 }) => [v, w, shown, hidden2])(0, { hidden: 1, shown: 2, hidden2: 3 }));
class Y { hidden = 1; static hidden2() { return "s"; } get shown() { return this.hidden; } set hidden3(x) { this.hidden = x; } }
let y = new Y; y.hidden3 = 5; y.hidden++; tell(y.hidden, y.shown, Y.hidden2());
let hidden = 7, made = { hidden, shown: hidden, hidden2() { return this.hidden; } }; tell(made.hidden, made.hidden2(), made["shown"]);
let outer = { hidden: Math, hidden2: undefined, shown: Math }, { hidden: { max }, hidden2 = 4 } = outer; tell(max(1, 2), hidden2, outer.hidden === Math, outer.hidden2);
let n = 3, text = "n"; const one = () => { tell("one"); return 1; }, two = () => { tell("two"); return 2; };
tell(n === 3, 3 !== n, typeof n === "number", n > 2, n <= 2, one() < two(), one() == 1, 2 === two(), n % 2 === 1, -n < 0, !n === false);
tell((n, 4) === 4, n === (n, 3), "n" in { n } === true, n < 4 === true, text === \`n\`, (() => { return typeof n === \`number\` })());
tell(n === 3 ? 1 : 2, 3 !== n ? a === 1 ? 3 : 4 : typeof n === \`string\` ? 5 : 6, (n === 3 ? () => 7 : () => 8)(), n == 4 ? (n, 9) : 10, n > 2 ? 11 : 12);
let choice; n === 4 ? choice = 1 : choice = 2; tell(choice, (n, 3) === n ? 1 : 2, [n === 3 ? { z: 1 } : {}].length);
switch (n) { case 3: tell("three"); break; default: tell("other"); }
label: for (;;) { if (n === 3) break label }
const list = () => { const all = []; all.push(1), all.push(2), all.push(3); return all.push(4), \`x\`, all; }; tell(list());
if (n) tell("x"), tell("y"); else tell("z");
const thrown = () => { throw tell("t"), typeof n; }; try { thrown() } catch (v) { tell(v) }
n = 2, ({ n } = { n }), tell(n), n = 3, function () { tell("f"); }();
do n--; while (n > 0)
const forms = { f(a) { return \`\${a}:\${n} \`; }, async g({ n = 5 }) { return n; }, h: (a, b) => { return \`\${a - b}\${n}x\`; }, i: async (a) => { await a; return a; }, j: () => { return 1; },
  k() { return super.toString === Object.prototype.toString; }, l() { return arguments.length; }, m: function () { return this === forms; }, n: () => { return this; }, "o-p"(a) { return [\`\${a}\`, \`\${a}/\`.length]; } };
tell(forms.f(1), await forms.g({}), forms.h(5, 3), await forms.i(\`\${\`\${n},\`}:\`), forms.j(), forms.k(), forms.l(1, 2), forms.m(), forms.n(), forms["o-p"]("q"));
const when = (a) => { a && tell("and"); a && (n, tell("both")); if (a) a.x && tell("if"); else tell("else"); return a ? "yes" : \`no\`; }; tell(when({ x: 1 }), when(0), when({}));
tell(((v, { x: w }, z) => [v, w, z])(n, { x: text }, 1), await (async (v, w) => { await v; return v - w; })(n, a), ((v, w) => v - w)(one(), two()), ((v, w = v) => w)(1), ((...v) => v)(1, 2));
const either = (a) => { return a.length > 1 ? "long" : a ? (n, "one") : [a]; }; tell(either("ab"), either("a"), either(""));
try { first.x.y } catch { tell("caught") } finally { tell("done") }
export { told as default };
`.replace("let o = {", "let o = { inner: [],");
const INTERNAL = new Set(["hidden", "hidden2", "hidden3"]);

async function run(script: string): Promise<string[]> {
  return (await import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(script)}`)).default;
}

test("however a script is spelled, it does the same, and taking back all changes gives the first spelling", async () => {
  // Only without its spaces: the minifiers would leave little of it.
  const { code: script } = await minify("script.js", SCRIPT, { compress: false, mangle: false, module: true });
  const expected = await run(script);
  expect(expected.length).toBeGreaterThan(15);
  expect(await run(SCRIPT)).toEqual(expected);
  const texts = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.integer({ min: 1, max: 400 }), async (seed, changes) => {
      const spellings = new Spellings(script, INTERNAL, seededRandom(seed));
      const first = spellings.text;
      const taken = Array.from({ length: changes }, () => spellings.change());
      texts.add(spellings.text);
      expect(await run(spellings.text)).toEqual(expected);
      for (const undo of taken.toReversed()) undo?.();
      expect(spellings.text).toBe(first);
    }),
  );
  expect(texts.size).toBeGreaterThan(50);
});

test("of many spellings the smallest is found, and the same one each time", async () => {
  // Six times the same, but for names, order and sides.
  const functions = ["abc", "bca", "cab", "acb", "bac", "cba"].map(
    ([a, b, c], i) =>
      `function f${i}(${a},${b}){let ${c}={first:${a},second:${b}};${i % 2 ? `return ${c}===${a}` : `return ${a}===${c}`}}`,
  );
  const script = `${functions.join("")}export{f0 as default}`;
  const search = { script, internal: [], changes: 3000 };
  const found = searched(search);
  const bytes = (text: string): number => deflateRawSync(text, { level: 9 }).length;
  expect(bytes(found)).toBeLessThan(bytes(script) - 30);
  expect(searched(search)).toBe(found);
});
