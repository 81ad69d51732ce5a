/**
 * A page of scripts, styles and WebAssembly: Agarose, which stores them compressed, against one copy that is compressed
 * by `gzip -6` behind a CDN, over one line of the client. And how many text objects a cache of one size holds.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "@playwright/test";
import { LocalWorld } from "@agarose/dev-world/client";
import { describeMachine } from "@agarose/dev-world/machine";
import { spread, summarize, table } from "@agarose/dev-world/statistics";
import { fileOfPackage } from "../../fixtures/same-app.ts";
import { requestsDuring } from "../../fixtures/requests-during.ts";
import type { Bench, BenchOptions } from "../bench.ts";
import { chromiumVersion } from "../lib/browser.ts";
import { forgetPlans, isOfReads, LAYOUTS, POP, startContest } from "./contest.ts";

const FILES = [
  "pdfjs-dist/build/pdf.mjs",
  "pdfjs-dist/build/pdf.worker.mjs",
  "pdfjs-dist/web/pdf_viewer.css",
  "maplibre-gl/dist/maplibre-gl.mjs",
  "maplibre-gl/dist/maplibre-gl.css",
  "three/build/three.module.js",
  "three/build/three.core.js",
  "hls.js/dist/hls.js",
  "openseadragon/build/openseadragon/openseadragon.js",
  "sql.js-httpvfs/dist/sql-wasm.wasm",
  "sql.js-httpvfs/dist/sqlite.worker.js",
  "geotiff/dist-browser/geotiff.js",
  "lunr/lunr.js",
];
const CLIENT_MBIT = 20;
const ROUNDS = 3;
const ADMIN = { authorization: "Bearer agarose-dev-admin-token" };
const OBJECTS = 40;
const OBJECT_BYTES = 200_000;
const OBJECTS_CACHE_BYTES = 1_000_000;

export const text: Bench = {
  name: "text",
  title: `Text: a page of scripts and styles over ${CLIENT_MBIT} Mbit/s`,
  async run(options) {
    const files = await readFiles();
    const [plainBytes, gzipBytes] = [total(files), total(files.map((file) => gzipSync(file, { level: 6 })))];
    const rows = await measure(files, gzipBytes, options);
    const held = { stored: await cachedObjects({}), plain: await cachedObjects({ "content-encoding": "identity" }) };
    return [
      `${files.length} files of packages, ${mb(plainBytes)} MB and by \`gzip -6\` ${mb(gzipBytes)} MB, fetched at once by a`,
      "page. All downloads of the client share one line. The other contestant is one copy of `gzip -6` in the region",
      "nearest to the PoP behind a CDN Worker, which sends it as it is. Medians (quartiles) of",
      `${options.quick ? 1 : ROUNDS} rounds in which the contestants take turns, each with files that were never asked for, and`,
      "then with cached ones. The bytes are those of all bodies that reached the client, plans and unused chunks among them.",
      "",
      table(["cache", "Agarose, ms", "one copy, ms", "ratio of times", "Agarose, MB", "ratio of bytes"], rows),
      "",
      `Of ${OBJECTS} text objects of ${OBJECT_BYTES / 1000} kB, a cache of ${OBJECTS_CACHE_BYTES / 1e6} MB holds ${held.stored} as they are stored by`,
      `default, and ${held.plain} uncompressed: ${(held.stored / held.plain).toFixed(1)} times as many.`,
      "",
      describeMachine(await chromiumVersion()),
    ].join("\n");
  },
};

/** Those of the folder `BENCH_TEXT` in place of `FILES`, if it is set. */
async function readFiles(): Promise<Uint8Array[]> {
  const folder = process.env["BENCH_TEXT"];
  if (folder === undefined) return Promise.all(FILES.map(fileOfPackage));
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name))));
}

const total = (files: readonly Uint8Array[]): number => files.reduce((sum, { length }) => sum + length, 0);
const mb = (bytes: number): string => (bytes / 1e6).toFixed(2);

async function measure(files: readonly Uint8Array[], gzipBytes: number, options: BenchOptions): Promise<string[][]> {
  const rounds = options.quick ? 1 : ROUNDS;
  const pages = Array.from({ length: rounds }, (_, round) => files.map((_file, i) => `bench/${round}/${i}`));
  // Equal content has one version, which memory and caches go by.
  const contentOf = (i: number, round: number): Uint8Array => Buffer.concat([files[i]!, Buffer.from(`/*${round}*/`)]);
  const objects = new Map(pages.flatMap((keys, round) => keys.map((key, i) => [key, contentOf(i, round)] as const)));
  options.progress("uploads");
  const contest = await startContest(LAYOUTS[0]!, objects, {
    cacheBytes: 2 * rounds * gzipBytes,
    clientMbit: CLIENT_MBIT,
    gzip: true,
  });
  const { world, ours, plain, cdn, close } = contest;
  try {
    const rows: string[][] = [];
    for (const cache of ["uncached", "cached"]) {
      const times = { agarose: [] as number[], cdn: [] as number[] };
      const bytes: number[] = [];
      for (const [round, keys] of pages.entries()) {
        const ask = {
          agarose: async () => {
            const read = async (): Promise<unknown> => times.agarose.push(await timePage(ours, "/ec/", keys, objects));
            const sent = (await requestsDuring(world, read)).filter((one) => one.from === "client" && isOfReads(one));
            bytes.push(sent.reduce((sum, one) => sum + one.bytes, 0));
          },
          cdn: async () => void times.cdn.push(await timePage(plain, cdn, keys, objects)),
        };
        for (const contestant of round % 2 === 0 ? (["agarose", "cdn"] as const) : (["cdn", "agarose"] as const)) {
          await ask[contestant]();
        }
      }
      options.progress(
        `${cache}: ${times.agarose.map(Math.round).join(" ")} against ${times.cdn.map(Math.round).join(" ")}`,
      );
      const [own, other, received] = [times.agarose, times.cdn, bytes].map((values) => summarize(values));
      rows.push([
        cache,
        spread(own!, 0),
        spread(other!, 0),
        (own!.median / other!.median).toFixed(2),
        mb(received!.median),
        (received!.median / gzipBytes).toFixed(2),
      ]);
      for (let period = 0; period < 2; period++) {
        for (const keys of pages) await timePage(ours, "/ec/", keys, objects);
        await world.cron();
        await forgetPlans(ours, "bench/");
      }
    }
    return rows;
  } finally {
    await close();
  }
}

/** Milliseconds until the page has all files. */
function timePage(
  page: Page,
  base: string,
  keys: readonly string[],
  objects: ReadonlyMap<string, Uint8Array>,
): Promise<number> {
  return page.evaluate(
    async (wanted) => {
      const start = performance.now();
      await Promise.all(
        wanted.map(async ({ url, bytes }) => {
          const response = await fetch(url, { cache: "no-store" });
          const { byteLength } = await response.arrayBuffer();
          if (!response.ok || byteLength !== bytes) throw new Error(`${url}: ${response.status}, ${byteLength} bytes`);
        }),
      );
      return performance.now() - start;
    },
    keys.map((key) => ({ url: base + key, bytes: objects.get(key)!.length })),
  );
}

/** How many objects of text a PoP holds whole after each was read several times. */
async function cachedObjects(headers: Record<string, string>): Promise<number> {
  const source = Buffer.concat(await Promise.all(FILES.map(fileOfPackage)));
  const world = await LocalWorld.start({ scale: 0, lineMbit: 0, cacheBytes: OBJECTS_CACHE_BYTES });
  try {
    const { url } = world.pops.find(({ name }) => name === POP)!;
    const keys = Array.from({ length: OBJECTS }, (_, i) => `text/${i}.js`);
    for (const [i, key] of keys.entries()) {
      const start = (i * 90_000) % (source.length - OBJECT_BYTES);
      await world.put(key, source.subarray(start, start + OBJECT_BYTES), { contentType: "text/javascript", headers });
    }
    for (let period = 0; period < 3; period++) {
      for (const key of keys) await (await fetch(`${url}/o/${key}`)).arrayBuffer();
      await world.cron();
    }
    const state = (await (await fetch(`${url}/v1/status`, { headers: ADMIN })).json()) as {
      cache: { objects: { chunks: number[] }[] };
    };
    return state.cache.objects.filter(({ chunks }) => chunks.length > 0).length;
  } finally {
    await world.stop();
  }
}
