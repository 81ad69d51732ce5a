/** Encrypted objects: read by a secret of the configuration, by a data key of the plan, or through a PoP. */
import { randomBytes } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { CellCipher, encryptedBytes, openSecret, sealEncryption } from "@agarose/core/encryption";
import type { Encryption } from "@agarose/core/format";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";
import type { ObjectClient } from "./object-client.ts";

const KEY = "members/a";
const CONTENT = sampleBytes(300_000);
const DATA_KEY = randomBytes(32);
const SECRET = `aes256:${randomBytes(32).toString("base64")}`;
const OTHER = `aes256:${randomBytes(32).toString("base64")}`;
const withSecret = (secret: string) => ({ encryption: [{ prefix: "members/", secrets: [secret] }] });

let stored: Uint8Array;
let encryption: Encryption;
beforeAll(async () => {
  const owner = { key: KEY, bytes: encryptedBytes(CONTENT.length) };
  const cipher = new CellCipher(DATA_KEY, owner);
  const cells: Uint8Array[] = [];
  for (let at = 0; at < CONTENT.length; at += 65_520)
    cells.push(await cipher.encrypt(cells.length, CONTENT.subarray(at, at + 65_520)));
  stored = new Uint8Array(Buffer.concat(cells));
  const properties = { contentType: "text/css", headers: {}, sha256: "0".repeat(64) };
  const secret = await openSecret(SECRET);
  encryption = await sealEncryption({ owner, dataKey: DATA_KEY, cipher, secret, nonce: randomBytes(12), properties });
});

async function startWorld(config: object = {}) {
  const world = new FakeWorld();
  world.put(KEY, stored, { stripeBytes: 100_000, requires: ["encryption"], encryption });
  return { world, client: world.client(config) };
}

/** Lets time pass until `promise` is settled: Web Crypto works beside the virtual clock. */
async function settle<T>(world: FakeWorld, promise: Promise<T>): Promise<T> {
  const state = { isSettled: false };
  const watch = (): void => void (state.isSettled = true);
  promise.then(watch, watch);
  while (!state.isSettled) {
    await world.clock.pass(1);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return promise;
}

async function read(world: FakeWorld, client: ObjectClient, headers: Record<string, string> = {}) {
  const answer = await settle(world, client.answer({ key: KEY, method: "GET", headers: new Headers(headers) }));
  const body = new Response(answer.body as ReadableStream<Uint8Array<ArrayBuffer>>).bytes();
  return { ...answer, bytes: await settle(world, body) };
}

const paths = (world: FakeWorld): string[] => world.log.map(({ url }) => new URL(url).pathname);

describe.each([
  ["a secret of the configuration", withSecret(SECRET), undefined],
  ["a data key of the plan", {}, DATA_KEY.toString("base64")],
  ["a data key of the plan, beside another secret", withSecret(OTHER), DATA_KEY.toString("base64")],
])("with %s", (_what, config, dataKey) => {
  test("an object is decrypted from chunks, whole and by range", async () => {
    const { world, client } = await startWorld(config);
    if (dataKey) for (const pop of world.pops) pop.dataKey = dataKey;
    const whole = await read(world, client);
    expect(whole.headers).toMatchObject({ "content-type": "text/css", "content-length": String(CONTENT.length) });
    expect(Buffer.compare(whole.bytes, CONTENT)).toBe(0);
    for (const [start, end] of [
      [0, 1],
      [65_519, 65_521],
      [120_000, 299_000],
    ] as const) {
      const part = await read(world, client, { range: `bytes=${start}-${end - 1}` });
      expect([part.status, part.headers["content-range"]]).toEqual([
        206,
        `bytes ${start}-${end - 1}/${CONTENT.length}`,
      ]);
      expect(Buffer.compare(part.bytes, CONTENT.subarray(start, end)), `${start}`).toBe(0);
    }
    expect(paths(world).filter((path) => path.startsWith("/o/"))).toEqual([]);
  });
});

test("a small range asks the buckets for little more than its cells", async () => {
  const { world, client } = await startWorld(withSecret(SECRET));
  await read(world, client, { range: "bytes=0-0" });
  world.log.length = 0;
  await read(world, client, { range: "bytes=70000-70001" });
  const chunks = paths(world).filter((path) => path.includes("/chunks/"));
  expect(chunks.length).toBeGreaterThan(0);
  expect(chunks.length).toBeLessThan(9);
});

test("a client without the secret reads at the PoP", async () => {
  const { world, client } = await startWorld();
  expect((await read(world, client)).status).toBe(200);
  expect(paths(world).filter((path) => path.startsWith("/o/"))).toEqual([`/o/${KEY}`]);
  expect(world.updates).toBe(0);
});

test.each([
  ["no secret and no PoP", { pops: [] }, "SECRET_MISSING"],
  ["a wrong secret", withSecret(OTHER), "SECRET_WRONG"],
])("a client with %s gets an error that names the secret", async (_what, config, code) => {
  const { world, client } = await startWorld(config);
  await expect(read(world, client)).rejects.toMatchObject({ code, details: { secret: encryption.secret } });
});

test("a manifest that was moved to another key is refused", async () => {
  const { world, client } = await startWorld({ encryption: [{ prefix: "", secrets: [SECRET] }] });
  world.put("members/b", stored, { stripeBytes: 100_000, requires: ["encryption"], encryption });
  const answer = client.answer({ key: "members/b", method: "GET", headers: new Headers() });
  await expect(settle(world, answer)).rejects.toMatchObject({ code: "DECRYPTION_FAILED" });
});

test("a malformed secret is refused at once", () => {
  const world = new FakeWorld();
  expect(() => world.client(withSecret("a password"))).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
});
