/** Regions are replaced or renamed while pages read: nothing is late because of it, and nothing is wrong. */
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { freePort } from "@agarose/dev-world/free-port";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Page } from "@playwright/test";
import { openControlledApp, read, sha256 } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const CLI = fileURLToPath(new URL("../../packages/cli/bin/agarose.js", import.meta.url));
const OBJECTS = 6;
const BYTES = 600_000;

// The PoPs see at once which version is the new one.
test.use({ worldOptions: { world: "agar", variables: { MANIFEST_TTL_SECONDS: "0" }, scale: 0.05 } });

interface Json {
  readonly regions: readonly { readonly name: string }[];
}

/** The command line in a folder, with the configuration that is there. */
type Agarose = (...args: string[]) => Promise<string>;

function commandsIn(folder: string): Agarose {
  return async (...args) => {
    const all = [CLI, "--config", join(folder, "agarose.config.json"), ...args];
    return (await promisify(execFile)(process.execPath, all, { cwd: folder })).stdout;
  };
}

/** Stores random objects below `migrate/`, and returns them by key. */
async function putObjects(folder: string, agarose: Agarose): Promise<Map<string, Uint8Array>> {
  const contents = new Map<string, Uint8Array>();
  await mkdir(join(folder, "files"));
  for (let i = 0; i < OBJECTS; i++) {
    const content = randomBytes(BYTES);
    contents.set(`migrate/${i}`, content);
    await writeFile(join(folder, "files", String(i)), content);
  }
  await agarose("put", "files", "--key", "migrate");
  return contents;
}

/** Reads all objects again and again while `work` runs. Resolves to what that returned, and to the number of reads. */
async function readDuring<T>(
  page: Page,
  contents: ReadonlyMap<string, Uint8Array>,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly reads: number }> {
  const working = new AbortController();
  let reads = 0;
  const reading = (async (): Promise<void> => {
    do {
      for (const [key, content] of contents) {
        expect(await read(page, key), key).toMatchObject({ status: 200, sha256: sha256(content) });
        reads++;
      }
    } while (!working.signal.aborted);
  })();
  const result = await work().finally(() => working.abort());
  await reading;
  return { result, reads };
}

/** Has the page forget its plans: they name what was there before, until a minute has passed. */
function purge(page: Page): Promise<void> {
  return page.evaluate(() => navigator.serviceWorker.controller!.postMessage({ agarose: "purge", prefix: "" }));
}

test("pages read every object while a region is replaced by another one", async ({ context, world }) => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-migrate-"));
  const agarose = commandsIn(folder);
  try {
    // PoPs and pages of the world know all regions, as they do after the first step and a deployment.
    await world.cron();
    const json = JSON.parse(await readFile(world.config, "utf8")) as Json;
    const [first, ...others] = json.regions;
    const last = others.at(-1)!;
    const write = (name: string, regions: Json["regions"]): Promise<void> =>
      writeFile(join(folder, name), JSON.stringify({ ...json, regions, code: { k: 3, m: 2 } }));
    await write("agarose.config.json", [first!, ...others.slice(0, -1)]);
    await write("next.config.json", others);
    const contents = await putObjects(folder, agarose);
    await agarose("migrate", "next.config.json");

    const page = await openControlledApp(context, world);
    const { result, reads } = await readDuring(page, contents, () =>
      agarose("migrate", "next.config.json", "--move", "--json"),
    );
    expect(JSON.parse(result)).toMatchObject({ recoded: OBJECTS, failed: 0 });
    expect(reads).toBeGreaterThanOrEqual(OBJECTS);

    await purge(page);
    await world.region(first!.name).down();
    for (const [key, content] of contents) {
      const answer = await read(page, key);
      expect(answer, key).toMatchObject({ status: 200, sha256: sha256(content) });
      expect(answer.headers["x-agarose-read"], key).not.toBe("degraded");
    }
    expect((await world.log()).some(({ path }) => path.includes(last.name))).toBe(true);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** A PoP of its own, which reads the configuration of a folder when it starts. Resolves when it listens. */
async function startPop(folder: string, port: number): Promise<() => Promise<unknown>> {
  const args = ["--config", join(folder, "agarose.config.json"), "pop", "home", "--data", join(folder, "pop")];
  const child = spawn(process.execPath, [CLI, ...args, "--listen", `127.0.0.1:${port}`, "--json"], { cwd: folder });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  await Promise.race([
    new Promise((resolve) => child.stdout.once("data", resolve)),
    ended.then((code) => Promise.reject(new Error(`the PoP ended with ${code}`))),
  ]);
  return () => {
    child.kill("SIGTERM");
    return ended;
  };
}

test("pages read every object while a region gets another name", async ({ context, world }) => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-rename-"));
  const agarose = commandsIn(folder);
  let stopPop: (() => Promise<unknown>) | undefined;
  try {
    const port = await freePort();
    const json = JSON.parse(await readFile(world.config, "utf8")) as Json;
    const [first, ...others] = json.regions.slice(0, 5);
    const pops = [{ name: "home", url: `http://127.0.0.1:${port}` }];
    const write = (name: string, regions: Json["regions"]): Promise<void> =>
      writeFile(join(folder, name), JSON.stringify({ ...json, pops, regions, code: { k: 3, m: 2 } }));
    await write("agarose.config.json", [first!, ...others]);
    await write("next.config.json", [{ ...first, name: "renamed" }, ...others]);
    const contents = await putObjects(folder, agarose);
    await agarose("migrate", "next.config.json");

    // PoP and page have what a deployment after the first step gives them.
    stopPop = await startPop(folder, port);
    await agarose("init", "public");
    await context.route("**/agarose.json*", (route) => route.fulfill({ path: join(folder, "public/agarose.json") }));
    const page = await openControlledApp(context, world);
    const { result, reads } = await readDuring(page, contents, () =>
      agarose("migrate", "next.config.json", "--move", "--json"),
    );
    expect(JSON.parse(result)).toMatchObject({ recoded: 0, completed: OBJECTS, failed: 0 });
    expect(reads).toBeGreaterThanOrEqual(OBJECTS);

    // Three of five chunks are left, and one of them is in the bucket with two names.
    await purge(page);
    for (const { name } of others.slice(0, 2)) await world.region(name).down();
    const before = (await world.log()).length;
    for (const [key, content] of contents) {
      expect(await read(page, key), key).toMatchObject({ status: 200, sha256: sha256(content) });
    }
    const chunks = (await world.log()).slice(before).filter(({ path }) => path.includes("/chunks/"));
    expect(chunks.some(({ path }) => path.includes(first!.name))).toBe(true);
    await world.reset();
    await agarose("migrate", "next.config.json", "--finish");
    expect(JSON.parse(await readFile(join(folder, "agarose.config.json"), "utf8"))).toMatchObject({
      regions: [{ name: "renamed" }, ...others],
    });
  } finally {
    await stopPop?.();
    await rm(folder, { recursive: true, force: true });
  }
});
