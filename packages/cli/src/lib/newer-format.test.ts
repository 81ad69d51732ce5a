/** Today's commands beside those of a later version: they never replace what they cannot read. */
import { createPrivateKey, sign } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeManifest } from "@agarose/core/format";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { manifestName, REGIONS, startTestWorld, type RunResult, type World } from "../../test/world.ts";

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
  await world.run(["keys", "new", "publisher.pem"]);
  await writeFile(join(world.dir, "upload-page"), "of today");
  expect((await run("put", "upload-page", "--key", "page")).code).toBe(0);
});

afterEach(() => world.close());

const run = (...args: string[]): Promise<RunResult> => world.run(args);
const stored = (region: string): Promise<Buffer> => world.read(region, manifestName("page"));

/** A put of a later version: the next generation, in its own format, signed by the publisher or not at all. */
async function putLater(regions: readonly string[], { isSigned = true } = {}): Promise<void> {
  const { crc32: _crc32, signature, ...today } = JSON.parse((await stored(REGIONS[0])).toString());
  const later = { ...today, agarose: 3, generation: today.generation + 1 };
  const { hashes: _hashes, ...covered } = later;
  const pem = createPrivateKey(await readFile(join(world.dir, "publisher.pem")));
  const value = sign(null, Buffer.from(`agarose-manifest/2\n${canonical(covered)}`), pem).toString("base64");
  const bytes = encodeManifest({ ...later, ...(isSigned && { signature: { ...signature, value } }) });
  for (const region of regions) await world.tamper(region, manifestName("page"), () => bytes);
}

/** RFC 8785, for what a manifest holds. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    const isObject = typeof part === "object" && part !== null && !Array.isArray(part);
    return isObject ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1))) : part;
  });
}

describe("an object that a later version has put", () => {
  // A majority is enough for a put to succeed, so the others may still have the generation before.
  const reached = REGIONS.slice(0, 4);

  test.each([
    ["put", ["put", "upload-new", "--key", "page"]],
    ["rm", ["rm", "page"]],
    ["repair", ["repair", "page"]],
    ["keys apply", ["keys", "apply", "page"]],
  ])("is not replaced by %s of today, which says that it is too old", async (_verb, args) => {
    await putLater(reached);
    await writeFile(join(world.dir, "upload-new"), "new");
    const before = await Promise.all(REGIONS.map(stored));
    const { code, stdout, stderr } = await run(...args);
    expect(code).not.toBe(0);
    expect(`${stdout.toString()}${stderr}`).toContain("MANIFEST_NEWER");
    expect(await Promise.all(REGIONS.map(stored))).toEqual(before);
  });

  test("is not called sound by verify, and gc leaves its chunks", async () => {
    await putLater(reached);
    const verdict = JSON.parse((await run("verify", "page", "--json")).stdout.toString());
    expect(verdict.objects[0].sound).toBe(false);
    expect(JSON.stringify(verdict)).toContain("MANIFEST_NEWER");
    const before = (await world.names("chunks/")).toSorted();
    await run("gc", "--delete");
    expect((await world.names("chunks/")).toSorted()).toEqual(before);
    expect(await world.names("garbage/")).toEqual([]);
  });

  test("but without a signature hinders no command: it is a forgery", async () => {
    await putLater([REGIONS[0]], { isSigned: false });
    expect((await run("repair", "page")).stdout.toString()).toMatch(/^repaired/);
    expect((await run("get", "page", "-")).stdout.toString()).toBe("of today");
    await putLater([REGIONS[0]], { isSigned: false });
    await writeFile(join(world.dir, "upload-new"), "new");
    expect((await run("put", "upload-new", "--key", "page")).code).toBe(0);
    expect((await run("get", "page", "-")).stdout.toString()).toBe("new");
  });
});
