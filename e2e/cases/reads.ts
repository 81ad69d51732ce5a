/** Reads while nothing is broken. */
import { LEAF_LIST } from "@agarose/core/format";
import { expect } from "@playwright/test";
import { read, sha256, takeServiceWorker } from "../fixtures/app.ts";
import type { BrowserCase } from "./case.ts";

/** Of a full stripe of 4 MiB, coded 9+3. */
const SHARD_BYTES = Math.ceil((4 * 1024 * 1024) / 9);
const BLOCK_BYTES = 32 * 1024;

const SIZES = [
  ["an empty object", 0],
  ["a 1-byte object", 1],
  ["a 1 MB object", 1_000_000],
  ["a 40 MB object", 40_000_000],
] as const;

export const readCases: readonly BrowserCase[] = [
  ...SIZES.map(([name, bytes]): BrowserCase => ({
    name: `the service worker reads ${name} byte for byte`,
    isFurther: bytes === 1 || bytes === 40_000_000,
    async run({ folder, openControlledApp, putRandom }) {
      const content = await putRandom(`${folder}sizes/${bytes}`, bytes);
      const answer = await read(await openControlledApp(), `${folder}sizes/${bytes}`);
      expect(answer).toMatchObject({ status: 200, bytes, sha256: sha256(content) });
      expect(answer.headers["x-agarose-read"]).toBe(bytes === 0 ? "edge" : "origin");
    },
  })),
  {
    name: "before a service worker controls the page, the edge decodes the same URL",
    async run({ folder, openApp, putRandom }) {
      const content = await putRandom(`${folder}first/load`, 300_000);
      const page = await openApp();
      const answer = await read(page, `${folder}first/load`);
      expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
      expect(answer.headers["x-agarose-pop"]).toBe("fra");
      await takeServiceWorker(page);
      const second = await read(page, `${folder}first/load`);
      expect(second).toMatchObject({ status: 200, sha256: sha256(content) });
      expect(second.headers["x-agarose-pop"]).toBeUndefined();
    },
  },
  {
    name: "a range reads only the blocks it touches",
    async run({ folder, openControlledApp, putRandom, world }) {
      const content = await putRandom(`${folder}range`, 20_000_000);
      const page = await openControlledApp();
      const start = 9_000_000;
      const answer = await read(page, `${folder}range`, { range: `bytes=${start}-${start + 999_999}` });
      expect(answer).toMatchObject({ status: 206, sha256: sha256(content.subarray(start, start + 1_000_000)) });
      expect(answer.headers["content-range"]).toBe(`bytes ${start}-${start + 999_999}/20000000`);
      const gets = (await world.log()).filter(({ method, path }) => method === "GET" && path.includes("/chunks/"));
      const ofData = gets.filter(({ path }) => !path.endsWith(`/${LEAF_LIST}`));
      // Stripe 2 has the bytes in its second, third and fourth shard: the end of one, all of one, the start of one.
      const blocks = [
        [4 * BLOCK_BYTES, SHARD_BYTES],
        [0, SHARD_BYTES],
        [0, 7 * BLOCK_BYTES],
      ] as const;
      expect(new Set(ofData.map(({ range }) => range)), "the blocks of the range and no others").toEqual(
        new Set(blocks.map(([from, to]) => `bytes=${2 * SHARD_BYTES + from}-${2 * SHARD_BYTES + to - 1}`)),
      );
    },
  },
  {
    name: "an unknown key is 404 with a code",
    async run({ openControlledApp }) {
      const answer = await read(await openControlledApp(), "no/such/object");
      expect(answer.status).toBe(404);
      expect(answer.text).toContain("OBJECT_NOT_FOUND");
    },
  },
  {
    name: "a key of every Unicode class reads back",
    async run({ folder, openControlledApp, putRandom }) {
      const key = `${folder}ключ/å´ 漢字 😀/a+b%2F&c=d;e@f!'(g)*~#?.bin`;
      const content = await putRandom(key, 5000);
      const path = key.split("/").map(encodeURIComponent).join("/");
      expect(await read(await openControlledApp(), path)).toMatchObject({ status: 200, sha256: sha256(content) });
    },
  },
  {
    name: "requests outside the prefix are left alone",
    async run({ openControlledApp }) {
      const page = await openControlledApp();
      const answer = await page.evaluate(async (url) => {
        const response = await fetch(url);
        return { status: response.status, read: response.headers.get("x-agarose-read") };
      }, "/agarose.json");
      expect(answer).toEqual({ status: 200, read: null });
    },
  },
  {
    name: "the first bytes arrive before the object is complete, and a read that is aborted ends",
    async run({ folder, openControlledApp, putRandom }) {
      await putRandom(`${folder}stream`, 40_000_000);
      const page = await openControlledApp();
      const seen = await page.evaluate(async (url) => {
        const aborter = new AbortController();
        const response = await fetch(url, { signal: aborter.signal });
        const reader = response.body!.getReader();
        const first = await reader.read();
        aborter.abort();
        const rest = await reader.read().then(
          () => "went on",
          (error: Error) => error.name,
        );
        return { first: first.value!.byteLength, rest };
      }, `/ec/${folder}stream`);
      expect(seen.first).toBeGreaterThan(0);
      expect(seen.first).toBeLessThan(40_000_000);
      expect(seen.rest).toBe("AbortError");
    },
  },
  ...(["aborted", "cancelled"] as const).map((how): BrowserCase => ({
    name: `after a body that was ${how} while chunks were in flight, the worker keeps answering`,
    isFurther: how === "cancelled",
    async run({ folder, openControlledApp, putRandom, world }) {
      const content = await putRandom(`${folder}left-${how}`, 40_000_000);
      const page = await openControlledApp();
      await page.evaluate(
        async ({ url, abort }) => {
          const aborter = new AbortController();
          const response = await fetch(url, { signal: aborter.signal });
          const reader = response.body!.getReader();
          await reader.read();
          if (abort) aborter.abort();
          else await reader.cancel();
        },
        { url: `/ec/${folder}left-${how}`, abort: how === "aborted" },
      );
      const answer = await read(page, `${folder}left-${how}`, { range: "bytes=0-99" });
      expect(answer).toMatchObject({ status: 206, sha256: sha256(content.subarray(0, 100)) });
      const gets = (await world.log()).filter(({ method, path }) => method === "GET" && path.includes("/chunks/"));
      expect(gets.length, "not all of the object was asked for").toBeLessThan(9 * 10);
    },
  })),
];
