/**
 * Objects that are stored compressed, as pre-compressed sites have them: the page sees what it would see of a plain
 * server, at the door of a PoP and under the service worker.
 */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { NEAR } from "../cases/faults.ts";
import { openControlledApp } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const TEXT = `export const words = ${JSON.stringify(Array.from({ length: 20_000 }, (_, i) => `word ${i}`))};`;

const CODED = {
  gzip: ["gzip", gzipSync(TEXT)],
  x: ["x-gzip", gzipSync(TEXT)],
  deflate: ["deflate", deflateSync(TEXT)],
  raw: ["deflate", deflateRawSync(TEXT)],
  br: ["br", brotliCompressSync(TEXT)],
  zstd: ["zstd", zstdCompressSync(TEXT)],
  chain: ["gzip, br", brotliCompressSync(gzipSync(TEXT))],
  identity: ["identity", Buffer.from(TEXT)],
} as const;

test("coded objects are their text for fetch, import() and a resumed download, with a region down", async ({
  context,
  world,
}) => {
  for (const [name, [coding, bytes]] of Object.entries(CODED)) {
    await world.put(`coded/${name}.js`, bytes, {
      contentType: "text/javascript; charset=utf-8",
      headers: { "content-encoding": coding },
    });
  }
  const page = await openControlledApp(context, world);
  await world.region(NEAR).down();
  const seen = await page.evaluate(
    async ({ names, pop }) => {
      const found: Record<string, unknown> = {};
      for (const name of names) {
        const path = `/ec/coded/${name}.js`;
        const first = await fetch(path);
        const text = await first.text();
        const resumed = await fetch(path, {
          headers: { range: "bytes=1000-", "if-range": first.headers.get("etag") ?? "" },
        });
        const rest = await resumed.text();
        const { words } = (await import(path)) as { words: string[] };
        const atPop = await (await fetch(`${pop}/o/coded/${name}.js`)).text();
        found[name] = {
          isSame: text === atPop,
          length: text.length,
          // Whole again, or the very rest.
          isResumedRightly: (resumed.status === 206 ? text.slice(0, 1000) : "") + rest === text,
          words: words.length,
          isCoded: first.headers.has("content-encoding") && first.headers.get("content-encoding") !== "identity",
        };
      }
      return found;
    },
    { names: Object.keys(CODED), pop: world.pops[0]!.url },
  );
  const right = { isSame: true, length: TEXT.length, isResumedRightly: true, words: 20_000, isCoded: false };
  expect(seen).toEqual(Object.fromEntries(Object.keys(CODED).map((name) => [name, right])));
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
});
