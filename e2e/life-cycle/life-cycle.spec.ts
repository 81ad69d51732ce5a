/** Browsers stop and replace service workers during a read. A read ends with all its bytes or with an error. */
import type { BrowserContext, Page } from "@playwright/test";
import { openControlledApp, read, sha256 } from "../fixtures/app.ts";
import { bitmap } from "../fixtures/bitmap.ts";
import { openInitialisedApp, type InPage } from "../fixtures/initialised-app.ts";
import { expect, test } from "../fixtures/test.ts";
import type { LocalWorld } from "@agarose/dev-world/client";

/** Ten stripes: the reader is at most four ahead of the page, so a page that pauses holds the read in its middle. */
const LONG_BYTES = 40_000_000;

interface Ended {
  readonly bytes: number;
  readonly sha256: string;
  /** Undefined when the body ended as if it were whole. */
  readonly error: string | undefined;
}

/** Starts a read in the page and stops after its first part. */
async function readFirstPart(page: Page, key: string): Promise<void> {
  await page.evaluate(async (url) => {
    const response = await fetch(url, { cache: "no-store" });
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    Object.assign(globalThis, { life: { reader, parts: [value!] } });
  }, `/ec/${key}`);
}

/** Reads on to the end of what `readFirstPart` began. */
function readToEnd(page: Page): Promise<Ended> {
  return page.evaluate(async () => {
    const { reader, parts } = (
      globalThis as unknown as { life: { reader: ReadableStreamDefaultReader<Uint8Array>; parts: Uint8Array[] } }
    ).life;
    let error: string | undefined;
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value);
    } catch (cause) {
      error = String(cause);
    }
    const whole = await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer();
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
    const hex = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return { bytes: whole.byteLength, sha256: hex, error };
  });
}

/** Kills the worker as the browser does when it wants its memory back. Resolves when it is gone. */
async function killWorker(context: BrowserContext, page: Page): Promise<void> {
  const session = await context.newCDPSession(page);
  const stopped = new Promise<void>((resolve) => {
    session.on("ServiceWorker.workerVersionUpdated", ({ versions }) => {
      if (versions.some(({ status, runningStatus }) => status === "activated" && runningStatus === "stopped"))
        resolve();
    });
  });
  await session.send("ServiceWorker.enable");
  await session.send("ServiceWorker.stopAllWorkers");
  await stopped;
}

/** Requests for chunks since the last reset. */
async function chunkRequests(world: LocalWorld): Promise<number> {
  return (await world.log()).filter(({ method, path }) => method === "GET" && path.includes("/chunks/")).length;
}

/** The one thing that must not be: fewer bytes than the object has, and no error. */
function expectWholeOrError(ended: Ended, content: Uint8Array): void {
  if (ended.error === undefined) expect(ended).toMatchObject({ bytes: content.length, sha256: sha256(content) });
  else expect(ended.bytes).toBeLessThan(content.length);
}

test("a worker killed in the middle of a read leaves no short body, and the next read starts it again", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("life/killed", LONG_BYTES);
  const page = await openControlledApp(context, world);
  await readFirstPart(page, "life/killed");
  await killWorker(context, page);
  const ended = await readToEnd(page);
  expectWholeOrError(ended, content);
  expect(await read(page, "life/killed")).toMatchObject({ status: 200, sha256: sha256(content) });
});

test("a new worker that takes over in the middle of a read leaves no short body", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("life/updated", LONG_BYTES);
  const page = await openControlledApp(context, world);
  await readFirstPart(page, "life/updated");
  const scripts = await page.evaluate(async () => {
    const container = navigator.serviceWorker;
    const before = container.controller!.scriptURL;
    const registration = await container.register("/agarose-sw.js?config=/agarose.json&release=2", {
      type: "classic",
      scope: "/",
    });
    const changed = new Promise((resolve) => container.addEventListener("controllerchange", resolve, { once: true }));
    const takeOver = (): void => registration.waiting?.postMessage({ type: "SKIP_WAITING" });
    takeOver();
    registration.installing?.addEventListener("statechange", takeOver);
    await changed;
    return { before, after: container.controller!.scriptURL };
  });
  expect(scripts.before).not.toBe(scripts.after);
  expectWholeOrError(await readToEnd(page), content);
  expect(await read(page, "life/updated")).toMatchObject({ status: 200, sha256: sha256(content) });
});

test("without a message, a new worker waits until the read and its page are gone", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("life/waiting", LONG_BYTES);
  const page = await openControlledApp(context, world);
  await readFirstPart(page, "life/waiting");
  await page.evaluate(async () => {
    const registration = await navigator.serviceWorker.register("/agarose-sw.js?config=/agarose.json&release=3", {
      type: "classic",
      scope: "/",
    });
    while (!registration.waiting) await new Promise((resolve) => setTimeout(resolve, 50));
  });
  expect(await readToEnd(page)).toEqual({ bytes: LONG_BYTES, sha256: sha256(content), error: undefined });
  const script = await page.evaluate(() => navigator.serviceWorker.controller!.scriptURL);
  expect(script).not.toContain("release=3");
});

test("two tabs share a worker, and one that closes in the middle of its read leaves the other's alone", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("life/tabs", LONG_BYTES);
  const stays = await openControlledApp(context, world);
  const closes = await openControlledApp(context, world);
  await Promise.all([readFirstPart(stays, "life/tabs"), readFirstPart(closes, "life/tabs")]);
  await closes.close();
  expect(await readToEnd(stays)).toEqual({ bytes: LONG_BYTES, sha256: sha256(content), error: undefined });
});

test("60 images that a page asks for at once all come", async ({ context, world }) => {
  const names = Array.from({ length: 12 }, (_, i) => `image-${i}.bmp`);
  for (const name of names) await world.put(`life/${name}`, bitmap(100, 60));
  const page = await openControlledApp(context, world);
  const widths = await page.evaluate(async (files) => {
    const images = Array.from({ length: 60 }, (_, i) => {
      const image = new Image();
      image.src = `/ec/life/${files[i % files.length]}?copy=${i}`;
      return image;
    });
    await Promise.all(images.map((image) => image.decode()));
    return images.map(({ naturalWidth }) => naturalWidth);
  }, names);
  expect(widths).toEqual(Array<number>(60).fill(100));
  // They came through the worker, not by way of the page's host.
  expect(await chunkRequests(world)).toBeGreaterThan(0);
});

test("fetch of the handle continues where a killed worker stopped", async ({ context, world, putRandom }) => {
  const content = await putRandom("life/resumed", LONG_BYTES);
  const page = await openInitialisedApp(context, world);
  await page.evaluate(async () => {
    const { register } = (globalThis as unknown as InPage).agarose;
    const reported: string[] = [];
    const onStale = ({ message }: Error): void => void reported.push(message);
    const handle = await register({ scope: "/", onStale });
    const reader = (await handle.fetch("life/resumed")).body!.getReader();
    const { value } = await reader.read();
    Object.assign(globalThis, { life: { reader, parts: [value!] }, reported });
  });
  await killWorker(context, page);
  expect(await readToEnd(page)).toEqual({ bytes: LONG_BYTES, sha256: sha256(content), error: undefined });
  const reported = await page.evaluate(() => (globalThis as unknown as { reported: string[] }).reported);
  expect(reported, "the file is the one that belongs to this page").toEqual([]);
});

test("requests outside of the prefix do not go by way of the worker, as the browser says itself", async ({
  context,
  world,
  putRandom,
}) => {
  await putRandom("life/routed", 1_000);
  const page = await openControlledApp(context, world);
  const routed = await page.evaluate(
    async (paths) => {
      for (const path of paths) await (await fetch(path, { cache: "no-store" })).arrayBuffer();
      return paths.map((path) => {
        const [entry] = performance.getEntriesByName(new URL(path, location.href).href);
        // Of the Service Worker Static Routing API.
        return (entry as PerformanceResourceTiming & { workerMatchedSourceType: string }).workerMatchedSourceType;
      });
    },
    ["/ec/life/routed", "/agarose.json?routed"],
  );
  expect(routed).toEqual(["", "network"]);
});

test("register says so when the server has something else in the place of the worker's file", async ({
  context,
  world,
}) => {
  const page = await openInitialisedApp(context, world);
  const refusal = await page.evaluate(async () => {
    const { register } = (globalThis as unknown as InPage).agarose;
    const error = await register({ worker: "/nowhere/agarose-sw.js" }).catch((cause: unknown) => cause);
    return { ...(error as { code: string; details: object }), message: (error as Error).message };
  });
  expect(refusal).toMatchObject({
    code: "CONFIG_INVALID",
    details: { problem: expect.stringMatching(/^(missing|type)$/) },
  });
  expect(refusal.message).toContain("npx agarose init");
});
