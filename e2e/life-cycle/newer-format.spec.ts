/** A worker in the field, its PoP upgraded, and an object in a format that came after the worker. */
import { createPrivateKey, sign } from "node:crypto";
import { encodeFrame, DEVELOPMENT_KEY } from "@agarose/core/format";
import { FrameReader } from "@agarose/core/sources";
import type { BrowserContext } from "@playwright/test";
import { read, registerWorker, sha256 } from "../fixtures/app.ts";
import { startOriginHost, type AppFile } from "../fixtures/origin-host.ts";
import { expect, test } from "../fixtures/test.ts";

const WORKER = "/agarose-sw.js?config=/agarose.json";
/** The prefix of the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** Makes the PoPs' plans those of a later version: of format 3, signed by the publisher. Returns the requests. */
async function upgradePops(context: BrowserContext): Promise<string[]> {
  const asked: string[] = [];
  const der = Buffer.concat([PKCS8, Buffer.from(DEVELOPMENT_KEY.privateKey, "base64")]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  await context.route(/\/v1\/read\/|\/o\/|\/chunks\//, async (route) => {
    const { pathname } = new URL(route.request().url());
    asked.push(pathname);
    if (!pathname.startsWith("/v1/read/")) return route.continue();
    const response = await route.fetch();
    const frames = new FrameReader(new Response(new Uint8Array(await response.body())).body!);
    const first = await frames.next();
    const plan = JSON.parse(new TextDecoder().decode(first.payload));
    const { hashes, signature, ...covered } = { ...plan.manifest, agarose: 3 };
    const text = `agarose-manifest/2\n${canonical(covered)}`;
    const value = sign(null, Buffer.from(text), key).toString("base64");
    const manifest = { ...covered, hashes, signature: { ...signature, value } };
    const newer = new TextEncoder().encode(`${JSON.stringify({ ...plan, manifest })}\n`);
    const end = encodeFrame("end", 0, 0, new Uint8Array(0));
    await route.fulfill({ response, body: Buffer.concat([encodeFrame("plan", 0, 0, newer), end]) });
  });
  return asked;
}

/** RFC 8785, for what a manifest holds. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    const isObject = typeof part === "object" && part !== null && !Array.isArray(part);
    return isObject ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1))) : part;
  });
}

test("a worker that is older than an object reads it at the PoP, and takes the newer worker", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("newer/format.bin", 300_000);
  const files: Record<string, AppFile> = {};
  const app = await startOriginHost(world.app, {}, files);
  try {
    const page = await context.newPage();
    await page.goto(app.url);
    await registerWorker(page, WORKER, "classic");
    const asked = await upgradePops(context);
    const today = await (await fetch(new URL(WORKER, app.url))).text();
    files[WORKER] = { contentType: "text/javascript", body: `${today}\n// A later version.\n` };
    expect(await read(page, "newer/format.bin")).toMatchObject({ status: 200, sha256: sha256(content) });
    // A slow PoP makes the worker ask the next one too, but no bucket.
    expect(asked.filter((path) => !path.startsWith("/v1/read/"))).toEqual(["/o/newer/format.bin"]);
    expect(await read(page, "newer/format.bin", { range: "bytes=1000-1999" })).toMatchObject({
      status: 206,
      sha256: sha256(content.subarray(1_000, 2_000)),
    });
    const hasNewer = async (): Promise<boolean> => {
      return page.evaluate(async () => (await navigator.serviceWorker.ready).waiting !== null);
    };
    await expect.poll(hasNewer).toBe(true);
  } finally {
    await app.close();
  }
});
