/** Objects that are stored compressed, over six buckets. */
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chunkName, manifestName, type Manifest } from "@agarose/core/format";
import { restoreVersion } from "@agarose/storage/history/restore-object";
import { recodeObject } from "@agarose/storage/maintenance/recode-object";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startTestWorld, type World } from "../../world.ts";

const STRIPE_BYTES = 200_000;

let world: World;
beforeEach(async () => {
  world = await startTestWorld({ auto: true, stripeBytes: STRIPE_BYTES });
});
afterEach(() => world.close());

/** Text: each byte of it has four bits. */
function textOf(bytes: number): Buffer {
  return Buffer.from(randomBytes(bytes / 2).toString("hex"));
}

async function manifestOf(key: string): Promise<Manifest> {
  return JSON.parse(String(await world.read("tokyo", manifestName(key)))) as Manifest;
}

function configOf(compress: "none" | "small" | "all") {
  return { config: { ...world.config, compress } };
}

describe.each([
  ["small", 2_000],
  ["small", 60_000],
  ["small", STRIPE_BYTES],
  ["all", 2_700_000],
] as const)("with compress: %s, text of %i bytes", (compress, bytes) => {
  test("is stored in little more than half, and read back whole and by range", async () => {
    const content = textOf(bytes);
    const put = await world.put("a", content, configOf(compress));
    expect(put).toMatchObject({ outcome: "stored", bytes });
    expect((await manifestOf("a")).bytes).toBeLessThan(0.65 * bytes);
    expect((await world.get("a")).equals(content)).toBe(true);
    for (const [start, end] of [
      [0, 1],
      [bytes / 2, bytes],
      [bytes - 7, bytes],
    ] as const) {
      expect((await world.get("a", { start, end })).equals(content.subarray(start, end))).toBe(true);
    }
    expect((await world.verify("a")).sound).toBe(true);
  });

  test("is unchanged when it is put again", async () => {
    const content = textOf(bytes);
    await world.put("a", content, configOf(compress));
    expect((await world.put("a", content, configOf(compress))).outcome).toBe("unchanged");
    expect((await world.put("a", textOf(bytes), configOf(compress))).outcome).toBe("stored");
  });
});

test("what is stored as it was is stored compressed once, and back when the configuration says so", async () => {
  const content = textOf(60_000);
  await world.put("a", content, configOf("none"));
  expect(await manifestOf("a")).not.toHaveProperty("gzip");
  expect((await world.put("a", content, configOf("small"))).outcome).toBe("stored");
  expect((await world.put("a", content, configOf("small"))).outcome).toBe("unchanged");
  expect(await manifestOf("a")).toHaveProperty("gzip");
  expect((await world.put("a", content, configOf("none"))).outcome).toBe("stored");
  expect(await manifestOf("a")).not.toHaveProperty("gzip");
  expect((await world.get("a")).equals(content)).toBe(true);
});

test.each<[string, Buffer, "none" | "small" | "all", Record<string, string>]>([
  ["random bytes", randomBytes(60_000), "all", {}],
  ["random bytes of several segments", randomBytes(2_200_000), "all", {}],
  ["text that saves less than 512 bytes", textOf(500), "all", {}],
  ["nothing", Buffer.alloc(0), "all", {}],
  ["content with a coding of its own", textOf(60_000), "all", { "content-encoding": "identity" }],
  ["text of several stripes", textOf(STRIPE_BYTES + 2), "small", {}],
  ["text, where the configuration says none", textOf(60_000), "none", {}],
  ["random bytes with a head of text", Buffer.concat([textOf(4_096), randomBytes(90_000)]), "small", {}],
])("is stored as it is: %s", async (_name, content, compress, headers) => {
  await world.put("a", content, { ...configOf(compress), headers });
  const manifest = await manifestOf("a");
  expect(manifest).toMatchObject({ bytes: content.length });
  expect(manifest).not.toHaveProperty("gzip");
  expect((await world.get("a")).equals(content)).toBe(true);
});

test("`put --compress all` is for objects of any size, and `ls --long` and `du` show both sizes", async () => {
  const bytes = 2_700_000;
  const content = textOf(bytes);
  await writeFile(join(world.dir, "file"), content);
  expect((await world.run(["put", "file", "--key", "a", "--compress", "all"])).code).toBe(0);
  const { bytes: compressedBytes } = await manifestOf("a");
  expect(compressedBytes).toBeLessThan(0.65 * bytes);
  const listed = JSON.parse(String((await world.run(["ls", "--long", "--json"])).stdout));
  expect(listed.objects).toEqual([expect.objectContaining({ key: "a", bytes, compressedBytes })]);
  expect(String((await world.run(["ls", "--long"])).stdout)).toMatch(/2\.6 MiB \(1\.\d MiB compressed\)/);
  const used = JSON.parse(String((await world.run(["du", "--json"])).stdout));
  expect(used).toMatchObject({ objects: 1, objectBytes: bytes });
  expect(used.storedBytes).toBeGreaterThan(compressedBytes);
  expect((await world.run(["get", "a", "out"])).code).toBe(0);
  expect((await readFile(join(world.dir, "out"))).equals(content)).toBe(true);
});

test("what was compressed on request stays so when it is stored again, and `versions` shows its length", async () => {
  const content = textOf(2_700_000);
  await world.put("a", content, { ...configOf("small"), compress: "all" });
  expect(await recodeObject("a", world.parts({ config: { ...world.config, code: { k: 2, m: 2 } } }))).toBeDefined();
  expect((await manifestOf("a")).gzip?.bytes).toBe(content.length);
  const listed = JSON.parse(String((await world.run(["versions", "a", "--json"])).stdout));
  expect(listed.versions).toMatchObject([{ generation: 2, bytes: content.length }]);
  const kept = await manifestOf("a");
  await world.put("a", textOf(2_000));
  await restoreVersion({ kept, seen: 3 }, world.parts(configOf("small")));
  expect((await manifestOf("a")).gzip?.bytes).toBe(content.length);
});

test("another type takes a new manifest of the same chunks", async () => {
  const content = textOf(60_000);
  const { upload } = await world.put("a", content, configOf("small"));
  await world.put("a", content, { ...configOf("small"), contentType: "text/css" });
  expect(await manifestOf("a")).toMatchObject({ upload, contentType: "text/css", gzip: { bytes: 60_000 } });
});

test("lost chunks are made again from what is stored", async () => {
  const content = textOf(180_000);
  await world.put("a", content, configOf("small"));
  const manifest = await manifestOf("a");
  for (let chunk = 0; chunk < manifest.m; chunk++) {
    await world.store(manifest.placement[chunk]!).remove([chunkName("a", manifest.upload, chunk)]);
  }
  expect((await world.get("a")).equals(content)).toBe(true);
  expect((await world.run(["repair", "a"])).code).toBe(0);
  expect((await world.verify("a")).sound).toBe(true);
});

test("an object under another code has the same content, compressed", async () => {
  const content = textOf(180_000);
  await world.put("a", content, { config: { ...world.config, compress: "small", code: { k: 2, m: 2 } } });
  const { config } = configOf("small");
  expect(await recodeObject("a", world.parts({ config }))).toMatchObject({ outcome: "stored", bytes: 180_000 });
  expect(await recodeObject("a", world.parts({ config }))).toBeUndefined();
  expect((await manifestOf("a")).gzip?.bytes).toBe(180_000);
  expect((await world.get("a")).equals(content)).toBe(true);
});
