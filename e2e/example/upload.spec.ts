/** A page that stores objects by the server of the guide, and reads them through its service worker. */
import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { passOn } from "@agarose/dev-world/proxy";
import type { LocalWorld } from "@agarose/dev-world/client";
import type { Page } from "@playwright/test";
import { read, takeServiceWorker } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const BYTES = 5_000_001;

interface Outcome {
  readonly stored?: { readonly key: string; readonly missing: readonly number[] };
  readonly error?: string;
  readonly progress: readonly { readonly step: string; readonly bytes: number; readonly total: number }[];
}

let server: Server;
let url: string;

test.beforeEach(async ({ world, page, context }) => {
  await world.reset();
  Object.assign(process.env, { AGAROSE_CONFIG: world.config, UPLOADS_SECRET: "0123456789abcdef0123456789abcdef" });
  const { answerUpload } = await import("./upload/server.ts");
  server = createServer((asked, answer) => {
    const isUpload = asked.url!.startsWith("/v1/uploads");
    const answered = isUpload ? answerUpload(asked, answer) : passOn(world.app, asked, answer, { agent: false });
    answered.catch(() => answer.destroy());
  });
  url = await listenLocally(server);
  await context.addCookies([{ name: "session", value: "1", url }]);
  await page.goto(url);
});

test.afterEach(() => {
  server.closeAllConnections();
  server.close();
  // Commands of later tests in this process would go by it.
  delete process.env["AGAROSE_CONFIG"];
});

/** The bytes that a page stores, which it makes itself. */
function contentOf(seed: number): Uint8Array {
  return Uint8Array.from({ length: BYTES }, (_, i) => (i * seed) ^ (i >> 8));
}

/** Stores them in the page, which `end` aborts. */
function upload(page: Page, key: string, seed: number): Promise<Outcome> {
  return page.evaluate(
    async ([name, factor, length]) => {
      const file = "/agarose-upload.js";
      const { putObject } = (await import(file)) as typeof import("@agarose/sw/upload");
      const content = Uint8Array.from({ length }, (_, i) => (i * factor) ^ (i >> 8));
      const progress: { step: "code" | "send"; bytes: number; total: number }[] = [];
      const abort = new AbortController();
      Object.assign(globalThis, { abort });
      const outcome = await putObject(name, new Blob([content]), {
        memory: localStorage,
        signal: abort.signal,
        onProgress: (one) => void progress.push(one),
      }).then(
        (stored) => ({ stored }),
        (error: Error) => ({ error: error.name }),
      );
      return { ...outcome, progress };
    },
    [key, seed, BYTES] as const,
  );
}

/** The paths of the chunks that a region took from the page since the last reset. */
async function taken(world: LocalWorld): Promise<string[]> {
  const puts = (await world.log()).filter(({ method, path }) => method === "PUT" && path.includes("X-Amz-Signature"));
  return puts.filter(({ status }) => status === 200).map(({ path }) => path.split("?")[0]!);
}

async function expectRead(page: Page, key: string, seed: number): Promise<void> {
  await takeServiceWorker(page);
  const sha256 = createHash("sha256").update(contentOf(seed)).digest("hex");
  expect(await read(page, key)).toMatchObject({ status: 200, bytes: BYTES, sha256 });
}

test("a page stores 5 MB, which it codes in a worker, and its service worker reads them", async ({ page, world }) => {
  const worker = page.waitForEvent("worker");
  const { stored, progress } = await upload(page, "uploads/film", 3);
  expect(stored).toMatchObject({ key: "uploads/film", missing: [] });
  expect((await worker).url()).toMatch(/agarose-upload\.js$/);
  const last = progress.at(-1)!;
  expect(last).toMatchObject({ step: "send", bytes: last.total });
  expect((await taken(world)).length).toBe(12);
  await expectRead(page, "uploads/film", 3);
});

test("an upload that was aborted goes on after a reload with the chunks that are missing", async ({ page, world }) => {
  const { endpoint } = world.regions[0]!;
  let held = 0;
  // The server reaches the region.
  await page.route(`${endpoint}/**`, () => void held++);
  const running = upload(page, "uploads/resumed", 5);
  await expect.poll(async () => (await taken(world)).length).toBeGreaterThan(0);
  await page.evaluate(() => (globalThis as unknown as { abort: AbortController }).abort.abort());
  expect((await running).error).toBe("AbortError");
  expect(held, "the fault fired").toBeGreaterThan(0);
  const before = await taken(world);
  await world.reset();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.reload();
  expect((await upload(page, "uploads/resumed", 5)).stored).toMatchObject({ missing: [] });
  const after = await taken(world);
  expect(after.filter((path) => before.includes(path))).toEqual([]);
  // A region may have a chunk whose answer the page has not seen.
  expect(after.length).toBeGreaterThan(0);
  expect(after.length).toBeLessThanOrEqual(12 - before.length);
  await expectRead(page, "uploads/resumed", 5);
});

test("a region that is down during the upload keeps nobody from storing or reading", async ({ page, world }) => {
  const [down] = world.regions;
  await world.region(down!.name).down();
  const { stored } = await upload(page, "uploads/without", 7);
  expect(stored!.missing.length).toBeGreaterThan(0);
  expect(await world.region(down!.name).fired(), "the fault fired").toBeGreaterThan(0);
  await expectRead(page, "uploads/without", 7);
});

test("a page without a session stores nothing", async ({ page, context, world }) => {
  await context.clearCookies();
  expect((await upload(page, "uploads/stranger", 9)).error).toBe("AgaroseError");
  expect(await taken(world)).toEqual([]);
});
