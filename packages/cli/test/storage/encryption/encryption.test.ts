/** Encrypted objects through the commands, over six buckets. */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemSha256 } from "@agarose/core";
import { encodeManifest, manifestName, sealManifest, type Manifest } from "@agarose/core/format";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { chunkPlace, DOWN, REGIONS, startTestWorld, type World } from "../../world.ts";

let world: World;
beforeEach(async () => {
  world = await startTestWorld({ auto: true, stripeBytes: 200_000 });
  await run(["keys", "secret", "secret.txt", "--prefix", "private/"]);
});
afterEach(() => world.close());

const FILE = "file";

/** Runs a command that must succeed. */
async function run(args: readonly string[]): Promise<unknown> {
  const { code, stdout, stderr } = await world.run([...args, "--json"]);
  expect(code, stderr + String(stdout)).toBe(0);
  return JSON.parse(String(stdout));
}

/** Runs a command that must fail, and returns the code of its error. */
async function failure(args: readonly string[]): Promise<string> {
  const { code, stderr, stdout } = await world.run([...args, "--json"]);
  expect(code).not.toBe(0);
  return (JSON.parse(stderr || String(stdout)) as { error: { code: string } }).error.code;
}

async function put(key: string, content: Uint8Array, more: readonly string[] = []): Promise<Record<string, unknown>> {
  await writeFile(join(world.dir, FILE), content);
  return ((await run(["put", FILE, "--key", key, ...more])) as { objects: [Record<string, unknown>] }).objects[0];
}

async function get(key: string, more: readonly string[] = []): Promise<Buffer> {
  await run(["get", key, "out", ...more]);
  return readFile(join(world.dir, "out"));
}

async function manifestOf(key: string, region = "tokyo"): Promise<Manifest> {
  const { inline, ...fields } = JSON.parse(String(await world.read(region, manifestName(key)))) as Manifest;
  return { ...fields, ...(inline && { inline: Buffer.from(String(inline), "base64") }) };
}

/** Replaces the manifest of a key in every region. */
async function replaceManifest(key: string, manifest: Manifest): Promise<void> {
  const { version: _v, hashesRoot: _r, hashesSha256: _h, signature: _s, ...draft } = manifest;
  const { crc32: _c, agarose: _a, ...fields } = draft as typeof draft & { crc32?: string };
  const bytes = encodeManifest(await sealManifest({ ...fields, key }, systemSha256));
  for (const region of REGIONS) {
    const options = { bytes: bytes.length, contentType: "application/json" };
    await world.store(region).put(manifestName(key), bytes, options);
  }
}

test.each([
  ["none", false],
  ["all", true],
] as const)(
  "text is encrypted with `--compress %s` as its own bytes or as gzip (%s)",
  async (compress, isCompressed) => {
    const content = Buffer.from(randomBytes(30_000).toString("hex"));
    await put("private/text", content, ["--compress", compress]);
    const { bytes, encryption, requires, gzip } = await manifestOf("private/text");
    expect(encryption).toBeDefined();
    expect([requires?.includes("gzip"), gzip !== undefined]).toEqual([isCompressed, isCompressed]);
    if (isCompressed) expect(bytes).toBeLessThan(0.65 * content.length);
    else expect(bytes).toBe(content.length + 16);
    expect((await get("private/text")).equals(content)).toBe(true);
  },
);

describe.each([
  ["an empty object", 0],
  ["an inline object", 1_000],
  ["a whole copy", 30_000],
  ["an object of several stripes", 700_001],
])("%s", (_what, bytes) => {
  test("is read back with its type, whole and by range", async () => {
    const content = randomBytes(bytes);
    const put1 = await put("private/a", content, [
      "--content-type",
      "text/html",
      "--header",
      "cache-control: no-store",
    ]);
    const sha256 = createHash("sha256").update(content).digest("hex");
    expect(put1).toMatchObject({ outcome: "stored", bytes, sha256 });
    expect((await get("private/a")).equals(content)).toBe(true);
    expect(await run(["get", "private/a", "out"])).toMatchObject({ bytes, contentType: "text/html" });
    for (const [start, end] of [
      [0, 1],
      [Math.floor(bytes / 2), bytes],
      [bytes - 70_000, bytes - 1],
    ] as const) {
      if (start < 0 || end > bytes || start >= end) continue;
      const got = await get("private/a", ["--range", `${start}-${end - 1}`]);
      expect(got.equals(content.subarray(start, end)), `${start}-${end}`).toBe(true);
    }
  });

  test("shows the buckets together neither content, nor hash, nor type", async () => {
    const content = Buffer.concat([Buffer.from("the plain beginning"), randomBytes(bytes)]).subarray(0, bytes || 19);
    await put("private/a", content, ["--content-type", "text/x-telling"]);
    const hash = createHash("sha256").update(content).digest();
    const telling = [content.subarray(0, 16), hash, Buffer.from(hash.toString("hex")), Buffer.from("text/x-telling")];
    telling.push(...["", "=", "=="].map((pad) => Buffer.from(content.subarray(0, 12).toString("base64") + pad)));
    const names = await world.names();
    expect(names.length).toBeGreaterThan(5);
    for (const name of names) {
      const [region = "", ...path] = name.split("/");
      const stored = await world.read(region, path.join("/"));
      for (const text of telling) expect(stored.includes(text), name).toBe(false);
    }
  });
});

test("objects outside the prefix are stored as they are", async () => {
  await put("public/a", Buffer.from("content"));
  expect(await manifestOf("public/a")).not.toHaveProperty("encryption");
});

test("a second put changes nothing, until content, type, secret or prefix differ", async () => {
  const content = randomBytes(90_000);
  await put("private/a", content);
  expect(await put("private/a", content)).toMatchObject({ outcome: "unchanged" });
  expect(await put("private/a", content, ["--content-type", "text/css"])).toMatchObject({ outcome: "stored" });
  expect(await put("private/a", randomBytes(90_000))).toMatchObject({ outcome: "stored" });
  await put("open/a", content);
  await run(["keys", "secret", "other.txt", "--prefix", "open/"]);
  expect(await put("open/a", content)).toMatchObject({ outcome: "stored" });
  expect(await manifestOf("open/a")).toHaveProperty("encryption");
});

test("equal contents are stored as different bytes", async () => {
  const content = randomBytes(1_000);
  const first = await put("private/a", content);
  const second = await put("private/b", content);
  expect((await manifestOf("private/a")).sha256).not.toBe((await manifestOf("private/b")).sha256);
  expect(first["version"]).not.toBe(second["version"]);
});

test("verify, repair and gc need no secret", async () => {
  const content = randomBytes(500_000);
  const stored = await put("private/a", content);
  const place = chunkPlace({ key: "private/a", upload: stored["upload"] } as never, 0);
  const { placement } = await manifestOf("private/a");
  await world.tamper(placement[0]!, place[1], () => undefined);
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as { encryption: unknown };
  await writeFile(world.configPath, JSON.stringify({ ...json, encryption: [] }));
  expect((await world.run(["verify", "private/a"])).code).not.toBe(0);
  await run(["repair", "private/a"]);
  await run(["verify", "private/a"]);
  await run(["gc", "--delete"]);
  expect(await failure(["get", "private/a", "out"])).toBe("SECRET_MISSING");
  await writeFile(world.configPath, JSON.stringify(json));
  expect((await get("private/a")).equals(content)).toBe(true);
});

test("a kept version is restored with its type, encrypted by a data key of its own", async () => {
  const content = randomBytes(500_000);
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...json, keep: [{ time: "1d" }] }));
  await put("private/a", content, ["--content-type", "text/x-kept"]);
  const { upload } = await manifestOf("private/a");
  await run(["rm", "private/a"]);
  expect(await run(["rm", "--undelete", "private/a"])).toMatchObject({ objects: [{ outcome: "restored" }] });
  expect((await get("private/a")).equals(content)).toBe(true);
  expect(await run(["get", "private/a", "out"])).toMatchObject({ contentType: "text/x-kept" });
  const restored = await manifestOf("private/a");
  expect(restored).toHaveProperty("encryption");
  const name = (await world.names(`history/private/a!${upload}`))[0]!;
  const [region = "", ...path] = name.split("/");
  const kept = JSON.parse(String(await world.read(region, path.join("/")))) as Manifest;
  expect(restored.sha256).not.toBe(kept.sha256);
  expect(await run(["rm", "--undelete", "private/a"])).toMatchObject({ objects: [{ outcome: "unchanged" }] });
});

test("a read continues while a region is down", async () => {
  const content = randomBytes(500_000);
  await put("private/a", content);
  world.faults.set("frankfurt", DOWN);
  expect((await get("private/a")).equals(content)).toBe(true);
  expect(world.fired.get("frankfurt")).toBeGreaterThan(0);
});

test("a wrong secret is an error that names it, and leaves no file", async () => {
  await put("private/a", Buffer.from("content"));
  await writeFile(join(world.dir, "secret.txt"), `aes256:${randomBytes(32).toString("base64")}\n`);
  const { secret } = (await manifestOf("private/a")).encryption!;
  const { stderr } = await world.run(["get", "private/a", "out"]);
  expect(stderr).toContain("SECRET_WRONG");
  expect(stderr).toContain(secret);
  expect(await world.files()).not.toContain("out");
});

test.each([
  ["is missing", { environment: "NO_SUCH_SECRET" }],
  ["is no secret", { command: ["echo", "a password"] }],
  ["cannot be read", { file: "no-such-file" }],
])("a put whose secret %s stores nothing", async (_what, secret) => {
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  const encryption = [{ prefix: "private/", secrets: [secret] }];
  await writeFile(world.configPath, JSON.stringify({ ...json, encryption }));
  await writeFile(join(world.dir, FILE), "content");
  expect(await failure(["put", FILE, "--key", "private/a"])).toBe("CONFIG_INVALID");
  expect(await world.names("manifests/private")).toEqual([]);
});

describe("what someone changes in the buckets is refused", () => {
  test("a manifest under another key", async () => {
    await put("private/a", randomBytes(1_000));
    await put("private/b", randomBytes(1_000));
    await replaceManifest("private/b", await manifestOf("private/a"));
    expect(await failure(["get", "private/b", "out"])).toBe("DECRYPTION_FAILED");
  });

  test("content whose hashes were made to fit", async () => {
    await put("private/a", randomBytes(1_000));
    const manifest = await manifestOf("private/a");
    const inline = manifest.inline!;
    inline[500]! ^= 1;
    const sha256 = createHash("sha256").update(inline).digest("hex");
    await replaceManifest("private/a", { ...manifest, inline, sha256 });
    expect(await failure(["get", "private/a", "out"])).toBe("DECRYPTION_FAILED");
    expect(await world.files()).not.toContain("out");
  });
});

describe("a secret is replaced", () => {
  const rotate = (...step: string[]): Promise<unknown> =>
    run(["keys", "secret", "new.txt", "--prefix", "private/", ...step]);

  test("in three steps, while every object stays readable and no chunk moves", async () => {
    const content = randomBytes(100_000);
    await put("private/a", content);
    const chunks = await world.names("chunks/");
    const { encryption: before, version } = await manifestOf("private/a");
    await rotate();
    expect(await put("private/b", content)).toMatchObject({ outcome: "stored" });
    expect((await manifestOf("private/b")).encryption!.secret).toBe(before!.secret);
    await rotate("--encrypt");
    expect((await get("private/a")).equals(content)).toBe(true);
    expect(await failure(["keys", "secret", "new.txt", "--prefix", "private/", "--finish"])).toBe("USAGE");
    await run(["keys", "apply"]);
    const { encryption: after, version: kept, generation } = await manifestOf("private/a");
    expect(after!.secret).not.toBe(before!.secret);
    expect(after!.properties).toBe(before!.properties);
    expect([kept, generation]).toEqual([version, 2]);
    expect(await world.names("chunks/private/a")).toEqual(chunks);
    await rotate("--finish");
    const { encryption } = JSON.parse(await readFile(world.configPath, "utf8")) as { encryption: unknown };
    expect(encryption).toEqual([{ prefix: "private/", secrets: [{ file: "new.txt" }] }]);
    expect((await get("private/a")).equals(content)).toBe(true);
    expect(await run(["keys", "apply"])).toMatchObject({ objects: [{ outcome: "current" }, { outcome: "current" }] });
  });

  test("not by a step out of turn", async () => {
    const step = (...more: string[]) => failure(["keys", "secret", "new.txt", "--prefix", "private/", ...more]);
    expect(await step("--encrypt")).toBe("USAGE");
    expect(await step("--finish")).toBe("USAGE");
    await rotate();
    expect(await failure(["keys", "secret", "third.txt", "--prefix", "private/"])).toBe("USAGE");
  });
});

test("sync stores, compares and fetches encrypted objects", async () => {
  await mkdir(join(world.dir, "site"));
  const content = randomBytes(70_000);
  await writeFile(join(world.dir, "site/a.bin"), content);
  await writeFile(join(world.dir, "site/b.txt"), "text");
  const events = async (args: readonly string[]) => run(["sync", ...args]);
  expect(await events(["site", "private/"])).toMatchObject({ stored: 2, unchanged: 0 });
  expect(await manifestOf("private/b.txt")).toMatchObject({ contentType: "application/octet-stream" });
  expect(await events(["site", "private/"])).toMatchObject({ stored: 0, unchanged: 2 });
  expect(await events(["--get", "private/", "back"])).toMatchObject({ fetched: 2 });
  expect((await readFile(join(world.dir, "back/a.bin"))).equals(content)).toBe(true);
  expect(await events(["--get", "private/", "back", "--checksum"])).toMatchObject({ fetched: 0, unchanged: 2 });
  expect(await run(["ls", "-l", "private/"])).toMatchObject({
    objects: [{ bytes: 70_000 }, { bytes: 4, contentType: "text/plain; charset=utf-8" }],
  });
});
