/** `lunr`, as it is, searches with an index that was built before, as sites of documentation do. */
import { createRequire } from "node:module";
import { fileOfPackage, showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";

/** The little of the library that the test uses: it comes without types. */
interface Lunr {
  (configure: (this: { ref(name: string): void; field(name: string): void; add(page: object): void }) => void): object;
  Index: { load(serialised: unknown): { search(query: string): { ref: string; score: number }[] } };
}
declare const lunr: Lunr;

const WORDS = ["region", "shard", "stripe", "worker", "cache", "bucket", "quorum", "parity", "manifest"];
const PAGES = Array.from({ length: 2_000 }, (_, i) => ({
  path: `/pages/${i}`,
  title: `${WORDS[i % 9]} ${WORDS[(i * i) % 7]}`,
  text: Array.from({ length: 30 }, (_word, j) => `${WORDS[(i + j * j) % 9]}${(i * 31 + j * 7) % 400}`).join(" "),
}));

test("lunr finds pages with an index that it loads", async ({ browser, world }) => {
  const build = createRequire(import.meta.url)("lunr") as Lunr;
  const index = build(function () {
    this.ref("path");
    for (const field of ["title", "text"]) this.field(field);
    for (const page of PAGES) this.add(page);
  });
  const files = {
    "search/lunr.min.js": await fileOfPackage("lunr/lunr.min.js"),
    "search/index.json": Buffer.from(JSON.stringify(index)),
  };
  const found = await showSame(browser, world, files, async (page) => {
    await page.addScriptTag({ url: "/ec/search/lunr.min.js" });
    return page.evaluate(async () => {
      const loaded = lunr.Index.load(await (await fetch("/ec/search/index.json")).json());
      return ["quorum", "+title:region +shard3*", "nothing"].map((query) => loaded.search(query).slice(0, 20));
    });
  });
  expect(found.map(({ length }) => length)).toEqual([20, 20, 0]);
});
