import { createHash, randomBytes } from "node:crypto";
import { chunkName, encodeManifest, manifestName } from "@agarose/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { chunkPlace, REGIONS, startTestWorld, type World } from "../../../test/world.ts";

let world: World;
beforeEach(async () => {
  world = await startTestWorld();
});
afterEach(() => world.close());

/** Stores an object as format 1 had it. Its shards have one block, so their hashes are those of format 2. */
async function putFormat1(key: string, body: Buffer): Promise<string> {
  const put = await world.put(key, body);
  const now = JSON.parse((await world.read("tokyo", manifestName(key))).toString());
  const { bytes, contentType, headers, modified, k, m, stripeBytes, sha256, placement, hashes } = now;
  const text = `agarose/1 ${sha256} ${k}+${m} ${stripeBytes}`;
  const version = createHash("sha256").update(text).digest("hex").slice(0, 32);
  for (let chunk = 0; chunk < k + m; chunk++) {
    const [region, name] = chunkPlace(put, chunk);
    const shard = await world.read(region, name);
    const options = { bytes: shard.length, contentType: "application/octet-stream" };
    await world.store(region).put(chunkName(key, version, chunk), shard, options);
    await world.store(region).remove([name]);
  }
  const code = { k, m, stripeBytes, sha256, placement, hashes };
  const old = { agarose: 1, key, version, bytes, contentType, headers, modified, ...code };
  for (const region of REGIONS) await world.tamper(region, manifestName(key), () => encodeManifest(old as never));
  return version;
}

test("an object of format 1 becomes one of format 2 whose chunks have not moved, once", async () => {
  const body = randomBytes(2_500);
  const version = await putFormat1("old", body);
  await world.put("new", randomBytes(10));
  expect((await world.get("old")).equals(body)).toBe(true);
  const chunks = await world.names("chunks/");
  const upgrade = async () => JSON.parse((await world.run(["upgrade", "--json"])).stdout.toString()) as unknown;
  expect(await upgrade()).toEqual({
    objects: [
      { key: "new", outcome: "current" },
      { key: "old", outcome: "upgraded" },
    ],
  });
  for (const region of REGIONS) {
    const manifest = JSON.parse((await world.read(region, manifestName("old"))).toString()) as unknown;
    expect(manifest).toMatchObject({ agarose: 2, generation: 1, upload: version, blockBytes: 0 });
  }
  expect(await world.names("chunks/")).toEqual(chunks);
  expect((await world.get("old")).equals(body)).toBe(true);
  expect(await world.verify("old")).toMatchObject({ sound: true });
  expect(await upgrade()).toMatchObject({ objects: [{ outcome: "current" }, { outcome: "current" }] });
});

test.each([4, 2])("an upgrade that ended after %i of six regions is completed by the next one", async (done) => {
  const body = randomBytes(700);
  await putFormat1("half", body);
  const name = manifestName("half");
  const old = await world.read("tokyo", name);
  await world.run(["upgrade"]);
  for (const region of REGIONS.slice(done)) await world.tamper(region, name, () => old);
  const { code, stdout } = await world.run(["upgrade", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout.toString())).toEqual({ objects: [{ key: "half", outcome: "upgraded" }] });
  const formats = await Promise.all(REGIONS.map(async (region) => JSON.parse(String(await world.read(region, name)))));
  expect(formats).toMatchObject(REGIONS.map(() => ({ agarose: 2 })));
  expect((await world.get("half")).equals(body)).toBe(true);
  expect(JSON.parse((await world.run(["upgrade", "--json"])).stdout.toString())).toMatchObject({
    objects: [{ outcome: "current" }],
  });
});

test("an object whose regions differ is not signed until the operator says so", async () => {
  const body = randomBytes(700);
  await putFormat1("disputed", body);
  await world.tamper("paulo", manifestName("disputed"), (stored) => {
    const forged = { ...JSON.parse(stored.toString()), contentType: "text/html", modified: "2099-01-01T00:00:00.000Z" };
    return encodeManifest(forged as never);
  });
  const refused = await world.run(["upgrade", "--json"]);
  expect(refused.code).toBe(1);
  expect(JSON.parse(refused.stdout.toString())).toMatchObject({
    objects: [{ outcome: "failed", error: { code: "MANIFEST_UNTRUSTED", details: { same: ["paulo"] } } }],
  });
  const held = JSON.parse((await world.read("tokyo", manifestName("disputed"))).toString()) as unknown;
  expect(held).toMatchObject({ agarose: 1, contentType: "application/octet-stream" });
  const accepted = await world.run(["upgrade", "--accept-newest", "--json"]);
  expect(JSON.parse(accepted.stdout.toString())).toMatchObject({ objects: [{ outcome: "upgraded" }] });
});
