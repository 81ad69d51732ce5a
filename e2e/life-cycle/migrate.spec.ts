/** Regions are replaced by others while pages read: nothing is late because of it, and nothing is wrong. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openControlledApp, read, sha256 } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const CLI = fileURLToPath(new URL("../../packages/cli/bin/agarose.js", import.meta.url));
const OBJECTS = 6;
const BYTES = 600_000;

// The PoPs see at once which version is the new one.
test.use({ worldOptions: { variables: { MANIFEST_TTL_SECONDS: "0" } } });

interface Json {
  readonly regions: readonly { readonly name: string }[];
}

test("pages read every object while a region is replaced by another one", async ({ context, world }) => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-migrate-"));
  const agarose = async (...args: string[]): Promise<string> => {
    const all = [CLI, "--config", join(folder, "agarose.config.json"), ...args];
    return (await promisify(execFile)(process.execPath, all, { cwd: folder })).stdout;
  };
  try {
    // PoPs and pages of the world know all regions, as they do after the first step and a deployment.
    const json = JSON.parse(await readFile(world.config, "utf8")) as Json;
    const [first, ...others] = json.regions;
    const last = others.at(-1)!;
    const write = (name: string, regions: Json["regions"]): Promise<void> =>
      writeFile(join(folder, name), JSON.stringify({ ...json, regions, code: { k: 3, m: 2 } }));
    await write("agarose.config.json", [first!, ...others.slice(0, -1)]);
    await write("next.config.json", others);
    const contents = new Map<string, Uint8Array>();
    await mkdir(join(folder, "files"));
    for (let i = 0; i < OBJECTS; i++) {
      const content = randomBytes(BYTES);
      contents.set(`migrate/${i}`, content);
      await writeFile(join(folder, "files", String(i)), content);
    }
    await agarose("put", "files", "--key", "migrate");
    await agarose("migrate", "next.config.json");

    const page = await openControlledApp(context, world);
    const moving = new AbortController();
    let reads = 0;
    const reading = (async (): Promise<void> => {
      do {
        for (const [key, content] of contents) {
          expect(await read(page, key), key).toMatchObject({ status: 200, sha256: sha256(content) });
          reads++;
        }
      } while (!moving.signal.aborted);
    })();
    const moved = JSON.parse(await agarose("migrate", "next.config.json", "--move", "--json")) as object;
    moving.abort();
    await reading;
    expect(moved).toMatchObject({ recoded: OBJECTS, failed: 0 });
    expect(reads).toBeGreaterThanOrEqual(OBJECTS);

    // The plans that the page has name the old chunks, until a minute has passed.
    await page.evaluate(() => navigator.serviceWorker.controller!.postMessage({ agarose: "purge", prefix: "" }));
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
