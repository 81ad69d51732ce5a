/** Ways of the web platform to load something, with objects, under the service worker and with a region down. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { NEAR } from "../cases/faults.ts";
import { openApp, openControlledApp, registerWorker } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const SCRIPT = "globalThis.ran = (globalThis.ran ?? 0) + 1;";
/** The smallest module of WebAssembly that exports a function: `f` returns 42. */
const WASM = Uint8Array.from([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 6, 1, 4, 0, 65, 42, 11,
]);
const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20"/></svg>';
const ODD_KEY = "platform/ä b+c%d&e=f#g?h'i/日本.bin";

const FILES = {
  "script.js": SCRIPT,
  "module.js": 'export { value } from "./inner.js";',
  "inner.js": "export const value = 'from the inner module';",
  "worker.js": "postMessage('a worker');",
  "outer.css": '@import "inner.css"; main { width: 11px; }',
  "inner.css": "main { height: 22px; }",
  "picture.svg": SVG,
  "umlauts.txt": "Größe: 1 µm",
  "page.html": "<!doctype html><title>Ü</title><p>ä</p>",
  "small.json": '{"a": 1}',
  "empty.bin": "",
} as const;

test("what a page can load, it loads from objects as from any server", async ({ context, world, putRandom }) => {
  for (const [name, text] of Object.entries(FILES)) await world.put(`platform/${name}`, Buffer.from(text));
  await world.put("platform/answer.wasm", WASM);
  const large = await putRandom("platform/large.bin", 3_000_000);
  await world.put(ODD_KEY, Buffer.from("odd"));
  const page = await openControlledApp(context, world);
  await world.region(NEAR).down();
  const integrity = `sha256-${createHash("sha256").update(SCRIPT).digest("base64")}`;
  const seen = await page.evaluate(
    async ({ hash, oddKey }) => {
      const base = "/ec/platform/";
      const settle = (element: HTMLElement): Promise<string> =>
        new Promise((resolve) => {
          element.addEventListener("load", () => resolve("loaded"));
          element.addEventListener("error", () => resolve("refused"));
          document.body.append(element);
        });
      const script = (hashOf: string): Promise<string> =>
        settle(Object.assign(document.createElement("script"), { src: `${base}script.js`, integrity: hashOf }));
      const link = (fields: object): Promise<string> => settle(Object.assign(document.createElement("link"), fields));
      const failed = (error: Error): string => error.name;

      const { value } = (await import(`${base}module.js`)) as { value: string };
      const { instance } = await WebAssembly.instantiateStreaming(fetch(`${base}answer.wasm`));
      const worker = new Worker(`${base}worker.js`);
      const said = await new Promise((resolve) => worker.addEventListener("message", ({ data }) => resolve(data)));
      await link({ rel: "stylesheet", href: `${base}outer.css` });
      const { width, height } = getComputedStyle(document.querySelector("main")!);
      const image = Object.assign(new Image(), { src: `${base}picture.svg` });
      await image.decode();

      const cache = await caches.open("a page's own");
      const original = await fetch(`${base}large.bin`);
      const [clone] = [original.clone(), await cache.put(`${base}large.bin`, original)];
      const kept = await (await cache.match(`${base}large.bin`))!.arrayBuffer();

      const progress: number[] = [];
      const asked = new XMLHttpRequest();
      asked.open("GET", `${base}large.bin?query=string`);
      asked.responseType = "arraybuffer";
      asked.addEventListener("progress", ({ loaded }) => progress.push(loaded));
      await new Promise((resolve) => {
        asked.addEventListener("loadend", resolve);
        asked.send();
      });
      const blocking = new XMLHttpRequest();
      blocking.open("GET", `${base}small.json`, false);
      blocking.send();

      const frame = document.createElement("iframe");
      frame.src = `${base}umlauts.txt`;
      await settle(frame);
      const empty = await fetch(`${base}empty.bin`);
      const odd = `/ec/${oddKey.split("/").map(encodeURIComponent).join("/")}`;
      const head = await fetch(`${base}large.bin`, { method: "HEAD", headers: { range: "bytes=0-0" } });
      return {
        value,
        wasm: (instance.exports["f"] as () => number)(),
        said,
        styles: [width, height],
        image: [image.naturalWidth, image.naturalHeight],
        integrity: [
          await script(hash),
          await script(hash.replace(/.{8}=/, "AAAAAAA=")),
          (globalThis as { ran?: number }).ran,
        ],
        fetchIntegrity: await fetch(`${base}script.js`, { integrity: "sha256-AAAA" }).then(() => "passed", failed),
        preload: await link({ rel: "preload", as: "fetch", crossOrigin: "anonymous", href: `${base}small.json` }),
        cloned: [(await clone.arrayBuffer()).byteLength, kept.byteLength],
        progress: [progress.length > 0, progress.at(-1), (asked.response as ArrayBuffer).byteLength],
        blocking: blocking.responseText,
        noCors: await (await fetch(`${base}small.json`, { mode: "no-cors" })).json(),
        charset: frame.contentDocument?.characterSet ?? (await fetch(`${base}umlauts.txt`)).headers.get("content-type"),
        empty: [empty.status, (await empty.arrayBuffer()).byteLength],
        odd: await (await fetch(odd)).text(),
        head: [head.status, head.headers.get("content-range"), head.headers.get("content-length")],
      };
    },
    { hash: integrity, oddKey: ODD_KEY },
  );
  const bytes = large.length;
  expect(seen).toEqual({
    value: "from the inner module",
    wasm: 42,
    said: "a worker",
    styles: ["11px", "22px"],
    image: [30, 20],
    integrity: ["loaded", "refused", 1],
    fetchIntegrity: "TypeError",
    preload: "loaded",
    cloned: [bytes, bytes],
    progress: [true, bytes, bytes],
    blocking: FILES["small.json"],
    noCors: { a: 1 },
    charset: "UTF-8",
    empty: [200, 0],
    odd: "odd",
    head: [206, `bytes 0-0/${bytes}`, "1"],
  });
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
});

test("a link saves an object under its own name or that of the object's header, with a region down", async ({
  context,
  world,
  putRandom,
  reads,
}) => {
  const bytes = await putRandom("platform/report.bin", 1_000_000);
  const named = { headers: { "content-disposition": 'attachment; filename="own.csv"' }, contentType: "text/csv" };
  await world.put("platform/named", Buffer.from("a,b\n"), named);
  const page = await openApp(context, world);
  await registerWorker(page, "/agarose-sw.js?config=/agarose.json&navigations=yes", "classic");
  await world.region(NEAR).down();
  const save = async (attributes: string): Promise<{ name: string; hash: string }> => {
    const download = page.waitForEvent("download");
    await page.evaluate((text) => {
      document.body.insertAdjacentHTML("beforeend", `<a ${text}>save</a>`);
      document.body.querySelector<HTMLElement>("a:last-child")!.click();
    }, attributes);
    const saved = await download;
    return { name: saved.suggestedFilename(), hash: sha256(await readFile(await saved.path())) };
  };
  expect(await save('href="/ec/platform/report.bin" download="mine.bin"')).toEqual({
    name: "mine.bin",
    hash: sha256(bytes),
  });
  expect(await save('href="/ec/platform/named"')).toEqual({ name: "own.csv", hash: sha256(Buffer.from("a,b\n")) });
  // Chromium asks no worker for a link with `download`: the app's server passes it on to a PoP.
  expect((await reads.all()).map(({ key }) => key)).toEqual(["platform/named"]);
});

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
