/** Encrypted objects at a PoP with their secret, and at one without. */
import { createHash } from "node:crypto";
import { CellCipher, encryptedBytes, openEncrypted, openSecret, sealEncryption } from "@agarose/core/encryption";
import { encodeManifest, type Encryption, type Manifest } from "@agarose/core/format";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { randomBytes, readBundle, startWorld, type TestWorld } from "../../../test/world.ts";

const READ_TOKEN = "a token for all readers";
const SECRET = `aes256:${Buffer.from(randomBytes(32, 5)).toString("base64")}`;
const OTHER = `aes256:${Buffer.from(randomBytes(32, 6)).toString("base64")}`;
const RULES = [{ prefix: "members/", secrets: [SECRET] }];
const content = randomBytes(300_000);
const bearer = { authorization: `Bearer ${READ_TOKEN}` };
const PRIVATE = { PRIVATE_PREFIXES: '["members/"]', PUBLIC_PREFIXES: '["members/open/"]', READ_TOKEN };

/** Stores an object as `agarose put` would encrypt it. */
async function put(world: TestWorld, key: string): Promise<Encryption> {
  const dataKey = randomBytes(32, 7);
  const owner = { key, bytes: encryptedBytes(content.length) };
  const cipher = new CellCipher(dataKey, owner);
  const cells: Uint8Array[] = [];
  for (let at = 0; at < content.length; at += 65_520)
    cells.push(await cipher.encrypt(cells.length, content.subarray(at, at + 65_520)));
  const encryption = await sealEncryption({
    owner,
    dataKey,
    cipher,
    secret: await openSecret(SECRET),
    nonce: randomBytes(12, 8),
    properties: {
      contentType: "text/css",
      headers: { "cache-control": "max-age=5" },
      sha256: createHash("sha256").update(content).digest("hex"),
    },
  });
  const edit = (manifest: Manifest): Uint8Array =>
    encodeManifest({ ...manifest, encryption, requires: ["encryption"] } as Manifest);
  await world.put(key, Buffer.concat(cells), { stripeBytes: 128 * 1024, edit });
  return encryption;
}

async function startWith(rules: unknown): Promise<TestWorld> {
  const world = await startWorld({ ...PRIVATE, ENCRYPTION: JSON.stringify(rules) });
  await put(world, "members/a");
  await put(world, "members/open/a");
  return world;
}

describe("a PoP with the secret", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWith(RULES);
  });
  afterAll(() => world.close());

  test("decrypts what it serves, whole and by range, with type and headers of the content", async () => {
    const open = await fetch(`${world.url}/o/members/open/a`);
    expect(open.status).toBe(200);
    expect(open.headers.get("content-type")).toBe("text/css");
    expect(open.headers.get("cache-control")).toBe("max-age=5");
    expect(open.headers.get("content-length")).toBe(String(content.length));
    expect(Buffer.compare(await open.bytes(), content)).toBe(0);
    for (const [start, end] of [
      [0, 1],
      [65_519, 65_521],
      [100_000, 290_000],
      [299_999, 300_000],
    ] as const) {
      const range = `bytes=${start}-${end - 1}`;
      const part = await fetch(`${world.url}/o/members/open/a`, { headers: { range } });
      expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes ${start}-${end - 1}/300000`]);
      expect(Buffer.compare(await part.bytes(), content.subarray(start, end)), range).toBe(0);
    }
  });

  test("asks for the right to read a private key first", async () => {
    expect((await fetch(`${world.url}/o/members/a`)).status).toBe(403);
    const read = await fetch(`${world.url}/o/members/a`, { headers: bearer });
    expect(read.headers.get("cache-control")).toBe("private, no-cache");
    expect(Buffer.compare(await read.bytes(), content)).toBe(0);
  });

  test("hands out the data key with the plan of a private key alone", async () => {
    const open = await readBundle(`${world.url}/v1/read/members/open/a?from=0&to=0`, "members/open/a");
    expect(open.plan).not.toHaveProperty("dataKey");
    const { plan } = await readBundle(`${world.url}/v1/read/members/a?from=0&to=0`, "members/a", bearer);
    const dataKey = new Uint8Array(Buffer.from(plan.dataKey!, "base64"));
    expect((await openEncrypted(plan.manifest!, dataKey)).shown.contentType).toBe("text/css");
    expect((await fetch(`${world.url}/v1/read/members/a?from=0&to=0`)).status).toBe(403);
  });

  test("takes a range of the content for the cells that have it", async () => {
    const url = `${world.url}/v1/read/members/open/a?range=bytes%3D65600-65700`;
    const { frames } = await readBundle(url, "members/open/a");
    // Cell 1 of 65,536 bytes lies in chunks 2 and 3 of four with 32,768 bytes each.
    expect(frames.map(({ type, stripe, chunk }) => [type, stripe, chunk])).toEqual([
      ["chunk", 0, 2],
      ["chunk", 0, 3],
      ["end", 0, 0],
    ]);
  });
});

test.each([
  ["no secret", [], "SECRET_MISSING"],
  ["a secret of other keys", [{ prefix: "others/", secrets: [SECRET] }], "SECRET_MISSING"],
  ["another secret", [{ prefix: "", secrets: [OTHER] }], "SECRET_WRONG"],
])("a PoP with %s answers no bytes, and its plans have no data key", async (_what, rules, code) => {
  const world = await startWith(rules);
  try {
    for (const method of ["GET", "HEAD"]) {
      const refused = await fetch(`${world.url}/o/members/a`, { method, headers: bearer });
      expect([refused.status, refused.headers.get("x-agarose-error")]).toEqual([502, code]);
      expect(refused.headers.get("cache-control")).toBe("no-store");
    }
    const { plan } = await readBundle(`${world.url}/v1/read/members/a?from=0&to=0`, "members/a", bearer);
    expect(plan.manifest?.encryption?.cipher).toBe("A256GCM");
    expect(plan).not.toHaveProperty("dataKey");
  } finally {
    await world.close();
  }
});

test("a secret that is replaced decrypts what both have encrypted", async () => {
  const world = await startWith([{ prefix: "members/", secrets: [OTHER, SECRET] }]);
  try {
    expect(Buffer.compare(await (await fetch(`${world.url}/o/members/open/a`)).bytes(), content)).toBe(0);
  } finally {
    await world.close();
  }
});

test("a malformed secret closes the PoP, and its value is in no message", async () => {
  const ENCRYPTION = JSON.stringify([{ prefix: "members/", secrets: ["aes256:hush"] }]);
  const world = await startWorld({ ...PRIVATE, ENCRYPTION });
  try {
    const refused = await fetch(`${world.url}/o/members/a`);
    expect([refused.status, refused.headers.get("x-agarose-error")]).toEqual([500, "CONFIG_INVALID"]);
    const text = await refused.text();
    expect(text).toContain("ENCRYPTION");
    expect(text).not.toContain("hush");
  } finally {
    await world.close();
  }
});
