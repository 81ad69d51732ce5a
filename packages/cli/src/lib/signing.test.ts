/** Manifests that are signed, and one hostile bucket that forges them. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeManifest } from "@agarose/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { manifestName, startTestWorld, type RunResult, type World } from "../../test/world.ts";

let world: World;
let publicKey: string;

beforeEach(async () => {
  world = await startTestWorld();
  const made = await world.run(["keys", "new", "publisher.pem", "--json"]);
  publicKey = (JSON.parse(made.stdout.toString()) as { publicKey: string }).publicKey;
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  const signing = { keyFile: join(world.dir, "publisher.pem") };
  await writeFile(world.configPath, JSON.stringify({ ...config, signing, publicKeys: [publicKey] }));
  await writeFile(join(world.dir, "upload-page"), "honest");
});

afterEach(() => world.close());

const run = (...args: string[]): Promise<RunResult> => world.run(args);

/** What a bucket's owner can write without the publisher's key: any content, any generation. */
async function forge(region: string): Promise<Uint8Array> {
  const { crc32: _crc32, ...manifest } = JSON.parse((await world.read(region, manifestName("page"))).toString());
  const forged = encodeManifest({ ...manifest, generation: 9, contentType: "text/html" } as never);
  await world.tamper(region, manifestName("page"), () => forged);
  return forged;
}

test("a forged manifest in one bucket is not read, is called untrusted, and repair replaces it", async () => {
  expect((await run("put", "upload-page", "--key", "page")).code).toBe(0);
  const honest = await world.read("dublin", manifestName("page"));
  expect(JSON.parse(honest.toString())).toHaveProperty("signature");
  const forged = await forge("frankfurt");
  expect((await run("get", "page", "-")).stdout.toString()).toBe("honest");
  const verify = JSON.parse((await run("verify", "page", "--json")).stdout.toString());
  expect(verify.objects[0].manifests).toMatchObject([{ region: "frankfurt", state: "untrusted" }, {}, {}, {}, {}, {}]);
  expect((await world.read("frankfurt", manifestName("page"))).equals(forged)).toBe(true);
  expect((await run("repair", "page")).stdout.toString()).toMatch(/^repaired/);
  for (const { name } of world.config.regions) {
    expect((await world.read(name, manifestName("page"))).equals(honest)).toBe(true);
  }
});

test("an object that only a stranger has signed for is neither read nor propagated", async () => {
  await run("put", "upload-page", "--key", "page");
  for (const { name } of world.config.regions.slice(1)) await world.tamper(name, manifestName("page"), () => undefined);
  await forge("frankfurt");
  expect((await run("get", "page", "-")).code).toBe(1);
  await run("repair", "page");
  expect((await world.names("manifests/")).length).toBe(1);
});

test("a put after a forgery wins, and rm signs its tombstone", async () => {
  await run("put", "upload-page", "--key", "page");
  await forge("frankfurt");
  await writeFile(join(world.dir, "upload-page"), "newer");
  expect((await run("put", "upload-page", "--key", "page")).code).toBe(0);
  expect((await run("get", "page", "-")).stdout.toString()).toBe("newer");
  expect((await run("rm", "page")).code).toBe(0);
  expect(JSON.parse((await world.read("frankfurt", manifestName("page"))).toString())).toMatchObject({
    deleted: true,
    signature: {},
  });
  expect((await run("ls")).stdout.toString()).toBe("");
});

test("keys show prints the public key, and keys new never replaces a file", async () => {
  const shown = JSON.parse((await run("keys", "show", "--json")).stdout.toString()) as object;
  expect(shown).toEqual({ signing: publicKey, publicKeys: [publicKey] });
  const before = await readFile(join(world.dir, "publisher.pem"), "utf8");
  expect((await run("keys", "new", "publisher.pem")).code).toBe(2);
  expect(await readFile(join(world.dir, "publisher.pem"), "utf8")).toBe(before);
});
