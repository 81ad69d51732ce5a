/**
 * Encrypted objects in a page: by a secret of the app's configuration, by a data key from the PoP, and without both.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { BrowserContext, Page } from "@playwright/test";
import type { LocalWorld } from "@agarose/dev-world/client";
import { read, sha256 } from "../fixtures/app.ts";
import { openInitialisedApp, type InPage } from "../fixtures/initialised-app.ts";
import { expect, test } from "../fixtures/test.ts";

const CLI = fileURLToPath(new URL("../../packages/cli/bin/agarose.js", import.meta.url));
const SECRET = `aes256:${randomBytes(32).toString("base64")}`;
const READ_TOKEN = "a token for all readers";
const BYTES = 700_000;

test.use({
  worldOptions: {
    world: "agar",
    variables: {
      PRIVATE_PREFIXES: '["members/"]',
      READ_TOKEN,
      ENCRYPTION: JSON.stringify([{ prefix: "members/", secrets: [SECRET] }]),
    },
  },
});

/** Stores random bytes, encrypted, by the command line. */
async function putEncrypted(world: LocalWorld, key: string): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-encryption-"));
  try {
    const content = randomBytes(BYTES);
    await writeFile(join(folder, "file"), content);
    await writeFile(join(folder, "secret"), SECRET);
    const config = JSON.parse(await readFile(world.config, "utf8")) as object;
    const encryption = [{ prefix: "", secrets: [{ file: "secret" }] }];
    await writeFile(join(folder, "config.json"), JSON.stringify({ ...config, encryption }));
    const args = ["--config", join(folder, "config.json"), "put", join(folder, "file"), "--key", key];
    await promisify(execFile)(process.execPath, [CLI, ...args]);
    return content;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function openWith(context: BrowserContext, world: LocalWorld, worker: string, config = {}): Promise<Page> {
  const page = await openInitialisedApp(context, world, config);
  await page.evaluate(async (file) => {
    await (globalThis as unknown as InPage).agarose.register({ worker: `/${file}`, scope: "/" });
  }, worker);
  return page;
}

test("a page with the secret reads them whole and by range, also while a region is down", async ({
  context,
  world,
}) => {
  const content = await putEncrypted(world, "open/a");
  const encryption = [{ prefix: "open/", secrets: [SECRET] }];
  const page = await openWith(context, world, "agarose-sw.encryption.js", { encryption });
  await world.region(world.regions[0]!.name).down();
  expect(await read(page, "open/a")).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(await read(page, "open/a", { range: "bytes=65519-65521" })).toMatchObject({
    status: 206,
    sha256: sha256(content.subarray(65_519, 65_522)),
  });
});

test("a page with a token gets the data key of a private object from the PoP", async ({ context, world }) => {
  const content = await putEncrypted(world, "members/a");
  const page = await openWith(context, world, "agarose-sw.encryption.js");
  const asked: string[] = [];
  context.on("request", (request) => asked.push(new URL(request.url()).pathname));
  expect((await read(page, "members/a")).status).toBe(403);
  const answer = await read(page, "members/a", { authorization: `Bearer ${READ_TOKEN}` });
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(asked.filter((path) => path.startsWith("/o/"))).toEqual([]);
});

test("the worker that does not decrypt reads at a PoP, and without the secret there gets its code", async ({
  context,
  world,
}) => {
  const content = await putEncrypted(world, "members/b");
  await putEncrypted(world, "open/b");
  const page = await openWith(context, world, "agarose-sw.js");
  const answer = await read(page, "members/b", { authorization: `Bearer ${READ_TOKEN}` });
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  const refused = await read(page, "open/b");
  expect(refused.headers["x-agarose-error"]).toBe("SECRET_MISSING");
});

for (const how of ["refuses", "hangs"] as const) {
  test(`a worker without decryption reads at the next PoP while the nearest one ${how}`, async ({ context, world }) => {
    const content = await putEncrypted(world, `members/next-pop-${how}`);
    const page = await openWith(context, world, "agarose-sw.js");
    const headers = { authorization: `Bearer ${READ_TOKEN}` };
    let nearest: string | undefined;
    const asked: string[] = [];
    await context.route(/\/o\//, (route) => {
      const { host } = new URL(route.request().url());
      asked.push(host);
      nearest ??= host;
      if (host !== nearest) return route.continue();
      return how === "refuses" ? route.abort() : undefined;
    });
    const answer = await read(page, `members/next-pop-${how}`, headers);
    expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
    expect(answer.ms).toBeLessThan(15_000);
    expect(asked.length, "the nearest one was asked, and another").toBeGreaterThan(1);
    expect(new Set(asked).size).toBeGreaterThan(1);
  });
}
