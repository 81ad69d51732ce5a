/** Manifests that are signed, and one hostile bucket that forges them. */
import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeManifest, DEVELOPMENT_KEY } from "@agarose/core/format";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { configuredPublicKey, signerOf } from "@agarose/storage/config/signing";
import { CONTROL_NAME } from "@agarose/storage/commit/control-record";
import { manifestName, REGIONS, startTestWorld, type RunResult, type World } from "../../world.ts";

let world: World;
let publicKey: string;

beforeEach(async () => {
  world = await startTestWorld();
  const made = await world.run(["keys", "new", "publisher.pem", "--json"]);
  publicKey = (JSON.parse(made.stdout.toString()) as { publicKey: string }).publicKey;
  await writeFile(join(world.dir, "upload-page"), "honest");
});

afterEach(() => world.close());

const run = (...args: string[]): Promise<RunResult> => world.run(args);

/** A bucket's owner can write this without the publisher's key: any content, any generation. */
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

test("keys new writes the key into a configuration that has none, and ends its unsigned mode", async () => {
  const configured = JSON.parse(await readFile(world.configPath, "utf8")) as Record<string, unknown>;
  expect(configured).toMatchObject({ publicKeys: [publicKey], signing: { keyFile: "publisher.pem" } });
  const { publicKeys: _keys, signing: _signing, ...others } = configured;
  await writeFile(world.configPath, JSON.stringify({ ...others, unsigned: true }));
  expect((await run("keys", "new", "second.pem")).code).toBe(0);
  const { unsigned, publicKeys } = JSON.parse(await readFile(world.configPath, "utf8"));
  expect([unsigned, publicKeys.length, publicKeys[0] === publicKey]).toEqual([undefined, 1, false]);
});

test("a configuration in another folder names its key relative to that folder", async () => {
  const { publicKeys: _keys, signing: _signing, ...others } = JSON.parse(await readFile(world.configPath, "utf8"));
  // As in buckets of its own: another key is in force in those of the first configuration.
  for (const region of REGIONS) await world.store(region).remove([CONTROL_NAME]);
  await mkdir(join(world.dir, "deep"));
  const path = join(world.dir, "deep/agarose.config.json");
  await writeFile(path, JSON.stringify(others));
  const elsewhere = (...args: string[]): Promise<RunResult> => world.spawn([...args, "--config", path]);
  expect((await elsewhere("keys", "new", "deep/own.pem")).code).toBe(0);
  expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ signing: { keyFile: "own.pem" } });
  const put = await elsewhere("put", "upload-page", "--key", "page");
  expect(put.code, put.stderr).toBe(0);
  expect((await elsewhere("get", "page", "-")).stdout.toString()).toBe("honest");
});

test("keys new leaves a configuration that has a key as it is", async () => {
  const before = await readFile(world.configPath, "utf8");
  expect((await run("keys", "new", "second.pem")).stdout.toString()).toContain("keys rotate");
  expect(await readFile(world.configPath, "utf8")).toBe(before);
});

test("without a private key, put says which field is missing and stores no manifest", async () => {
  const { signing: _signing, ...config } = JSON.parse(await readFile(world.configPath, "utf8"));
  await writeFile(world.configPath, JSON.stringify(config));
  const put = await run("put", "upload-page", "--key", "page");
  expect(put.code).not.toBe(0);
  expect(put.stderr + put.stdout.toString()).toContain("CONFIG_INVALID");
  expect(await world.names("manifests/")).toEqual([]);
});

test("keys apply signs what was stored in unsigned mode only when the operator vouches for it", async () => {
  await world.put("page", Buffer.from("from before"));
  expect((await run("get", "page", "-")).stderr).toContain("MANIFEST_UNTRUSTED");
  const refused = await run("keys", "apply", "--json");
  expect(refused.code).toBe(1);
  expect(JSON.parse(refused.stdout.toString()).objects).toMatchObject([{ error: { code: "MANIFEST_UNTRUSTED" } }]);
  const before = await world.read("tokyo", manifestName("page"));
  const dry = await run("keys", "apply", "--vouch", "--dry-run", "--json");
  const due = { objects: [{ key: "page", outcome: "due" }], dryRun: true };
  expect([dry.code, JSON.parse(dry.stdout.toString())]).toEqual([0, due]);
  expect(await world.read("tokyo", manifestName("page"))).toEqual(before);
  expect((await run("keys", "apply", "--vouch")).code).toBe(0);
  expect((await run("get", "page", "-")).stdout.toString()).toBe("from before");
});

test("keys apply signs nothing of which regions differ, until the operator says so", async () => {
  await world.put("disputed", Buffer.from("from before"));
  await world.tamper("paulo", manifestName("disputed"), (stored) => {
    const { crc32: _crc32, ...fields } = JSON.parse(stored.toString());
    return encodeManifest({ ...fields, generation: 2, contentType: "text/html" } as never);
  });
  const held = await world.read("tokyo", manifestName("disputed"));
  const refused = await run("keys", "apply", "--vouch", "--json");
  expect(refused.code).toBe(1);
  expect(JSON.parse(refused.stdout.toString())).toMatchObject({
    objects: [{ outcome: "failed", error: { code: "MANIFEST_UNTRUSTED", details: { same: ["paulo"] } } }],
  });
  expect(await world.read("tokyo", manifestName("disputed"))).toEqual(held);
  const accepted = await run("keys", "apply", "--vouch", "--accept-newest", "--json");
  expect(JSON.parse(accepted.stdout.toString())).toMatchObject({ objects: [{ outcome: "applied" }] });
});

describe("keys rotate", () => {
  let oldKeyOnly: string;
  /** `get` by a reader whose configuration still has the old key alone. */
  const asOldReader = (key: string): Promise<RunResult> =>
    world.spawn(["get", key, "-", "--config", join(world.dir, "old-reader.json")]);

  beforeEach(async () => {
    oldKeyOnly = await readFile(world.configPath, "utf8");
    await writeFile(join(world.dir, "old-reader.json"), oldKeyOnly);
    await run("put", "upload-page", "--key", "first");
    await run("put", "upload-page", "--key", "removed");
    await run("rm", "removed");
  });

  test("reads under both keys meanwhile, and refuses the old one at the end", async () => {
    expect((await run("keys", "rotate", "next.pem")).code).toBe(0);
    await run("put", "upload-page", "--key", "during");
    expect((await asOldReader("during")).stdout.toString(), "the old key still signs").toBe("honest");
    expect((await run("keys", "rotate", "next.pem", "--sign")).code).toBe(0);
    await run("put", "upload-page", "--key", "after");
    for (const key of ["first", "during", "after"]) {
      expect((await run("get", key, "-")).stdout.toString(), key).toBe("honest");
    }
    expect((await asOldReader("after")).stderr).toContain("MANIFEST_UNTRUSTED");
    expect((await run("keys", "apply")).code).toBe(0);
    expect((await run("keys", "rotate", "next.pem", "--finish")).code).toBe(0);
    const { publicKeys } = JSON.parse(await readFile(world.configPath, "utf8"));
    expect([publicKeys.length, publicKeys.includes(publicKey)]).toEqual([1, false]);
    for (const key of ["first", "during", "after"]) {
      expect((await run("get", key, "-")).stdout.toString(), key).toBe("honest");
    }
    const record = JSON.parse((await world.read("tokyo", manifestName("removed"))).toString());
    expect(record, "a tombstone is signed again, too").toMatchObject({ deleted: true, generation: 3 });
    const late = await world.spawn([
      "put",
      "upload-page",
      "--key",
      "by-the-old",
      "--config",
      join(world.dir, "old-reader.json"),
    ]);
    expect([late.code, late.stderr]).toEqual([1, expect.stringContaining("KEYS_OUTDATED")]);
    expect((await run("get", "by-the-old", "-")).stderr).toContain("OBJECT_NOT_FOUND");
  });

  test("a `keys apply` that was killed is completed by the next one in every region, of removed objects too", async () => {
    await run("keys", "rotate", "next.pem");
    await run("keys", "rotate", "next.pem", "--sign");
    const names = ["first", "removed"].map(manifestName);
    const before = await Promise.all(names.map((name) => world.read("tokyo", name)));
    expect((await run("keys", "apply")).code).toBe(0);
    // A kill leaves a minority of the regions as they were.
    for (const [index, name] of names.entries()) await world.tamper("tokyo", name, () => before[index]!);
    expect((await run("keys", "apply")).code).toBe(0);
    for (const name of names) expect(await world.read("tokyo", name)).toEqual(await world.read("dublin", name));
    expect((await run("keys", "rotate", "next.pem", "--finish")).code).toBe(0);
    expect(await run("verify")).toMatchObject({ code: 0 });
  });

  test("a repair by a machine that has the old key alone does not undo what a majority took by the new one", async () => {
    await run("keys", "rotate", "next.pem");
    await run("keys", "rotate", "next.pem", "--sign");
    const missed = await world.read("tokyo", manifestName("first"));
    await writeFile(join(world.dir, "upload-page"), "by the new key");
    expect((await run("put", "upload-page", "--key", "first")).code).toBe(0);
    await world.tamper("tokyo", manifestName("first"), () => missed);
    const repair = await world.spawn(["repair", "first", "--config", join(world.dir, "old-reader.json")]);
    expect(repair.code).toBe(1);
    expect(repair.stdout.toString()).toContain("MANIFEST_UNTRUSTED");
    expect((await run("get", "first", "-")).stdout.toString()).toBe("by the new key");
    expect((await run("repair", "first")).code).toBe(0);
    expect(await run("verify", "first")).toMatchObject({ code: 0 });
  });

  test("it does not end while an object is signed by the old key alone, and names one", async () => {
    await run("keys", "rotate", "next.pem");
    await run("keys", "rotate", "next.pem", "--sign");
    const before = await readFile(world.configPath, "utf8");
    const finish = await run("keys", "rotate", "next.pem", "--finish");
    expect([finish.code, finish.stderr]).toEqual([2, expect.stringMatching(/2 objects .*"first".*agarose keys apply/)]);
    expect(await readFile(world.configPath, "utf8")).toBe(before);
  });

  test.each([
    [["next.pem", "--sign"], "there is no next.pem"],
    [["publisher.pem"], "cannot be written"],
    [["next.pem", "--sign", "--finish"], "not both"],
  ])("out of order, %j changes nothing", async (args, message) => {
    const rotate = await run("keys", "rotate", ...args);
    expect([rotate.code, rotate.stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(await readFile(world.configPath, "utf8")).toBe(oldKeyOnly);
  });

  test("a second rotation does not begin before the first has ended", async () => {
    await run("keys", "rotate", "next.pem");
    expect((await run("keys", "rotate", "third.pem")).stderr).toContain("2 keys are trusted already");
    expect(existsSync(join(world.dir, "third.pem"))).toBe(false);
  });
});

test("a key that comes while the process runs signs from then on", async () => {
  const keyFile = join(world.dir, "late.pem");
  const sign = signerOf({ publicKeys: [publicKey], signing: { keyFile } })!;
  const signed = new Uint8Array(3);
  await expect(sign(signed)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  await copyFile(join(world.dir, "publisher.pem"), keyFile);
  expect((await sign(signed)).value).toHaveLength(88);
});

test("the development key's public half belongs to its private one", async () => {
  await writeFile(join(world.dir, "development.key"), DEVELOPMENT_KEY.privateKey);
  const signing = { keyFile: join(world.dir, "development.key") };
  expect(await configuredPublicKey(signing)).toBe(DEVELOPMENT_KEY.publicKey);
});

test("keys show prints the public key, and keys new never replaces a file", async () => {
  const shown = JSON.parse((await run("keys", "show", "--json")).stdout.toString()) as object;
  expect(shown).toEqual({ signing: publicKey, publicKeys: [publicKey] });
  const before = await readFile(join(world.dir, "publisher.pem"), "utf8");
  expect((await run("keys", "new", "publisher.pem")).code).toBe(2);
  expect(await readFile(join(world.dir, "publisher.pem"), "utf8")).toBe(before);
});
