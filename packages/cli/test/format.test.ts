/**
 * A second implementation of docs/reference/format.md, written from that page and without a line of ours, against the
 * first.
 */
import { createHash, createPrivateKey, createPublicKey, randomBytes, sign, verify } from "node:crypto";
import { readFile } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { encodeFrame, objectUrl } from "@agarose/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { REGIONS, startTestWorld, type World } from "./world.ts";

const PAGE = new URL("../../../docs/reference/format.md", import.meta.url);
const OBJECT = Buffer.from("Agarose is purified agar.");
const UPLOAD = "000102030405060708090a0b0c0d0e0f";
/** Of the page's private key: what PKCS #8 puts before a seed of Ed25519 (RFC 8410). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");
const PRIVATE_KEY = createPrivateKey({
  key: Buffer.concat([PKCS8, Buffer.from(indices(32))]),
  format: "der",
  type: "pkcs8",
});
const RAW_PUBLIC_KEY = createPublicKey(PRIVATE_KEY).export({ format: "der", type: "spki" }).subarray(-32);
const KEY_ID = sha256(RAW_PUBLIC_KEY).toString("hex").slice(0, 16);

let world: World;
let page: string;

beforeAll(async () => {
  page = await readFile(PAGE, "utf8");
  world = await startTestWorld();
});

afterAll(() => world.close());

test("the example of the page is what `agarose put` stores", async () => {
  const stores = world.stores.slice(0, 3);
  const regions = world.config.regions.slice(0, 3);
  const survive = { regions: 1, providers: 1 };
  const config = { ...world.config, regions, survive, code: { k: 2, m: 1 }, stripeBytes: 16 };
  const headers = { "cache-control": "max-age=60" };
  const nowMs = () => Date.UTC(2026, 0, 2, 3, 4, 5);
  const signer = async (signed: Uint8Array) => ({
    keyId: KEY_ID,
    value: sign(null, signed, PRIVATE_KEY).toString("base64"),
  });
  const more = { config, stores, contentType: "text/plain", headers, nowMs, newUpload: () => UPLOAD, sign: signer };
  await world.put("docs/grüße.txt", OBJECT, more);
  const chunks = blocksOf("chunks")[0]!.map((line) => line.split(/\s+/));
  expect(chunks).toHaveLength(3);
  for (const [region, name, hex] of chunks) expect((await world.read(region!, name!)).toString("hex")).toBe(hex);
  const manifest = await world.read("dublin", "manifests/docs/gr%C3%BC%C3%9Fe.txt@.json");
  expect(manifest.toString()).toBe(blocksOf("json")[0]![0]);
  expect(page).toContain(objectUrl("https://s3.example/bucket", chunks[2]![1]!));
});

test("the example of the page is what its rules give", () => {
  const written = encode("docs/grüße.txt", OBJECT, 2, 1, 16, UPLOAD);
  const lines = blocksOf("chunks")[0]!.map((line) => line.split(/\s+/));
  expect(written.chunks.map((chunk) => chunk.toString("hex"))).toEqual(lines.map(([, , hex]) => hex));
  expect(lines.map(([, name]) => name)).toEqual(written.names);
  const manifest = blocksOf("json")[0]![0]!;
  const { hashes, version, hashesSha256, hashesRoot } = written;
  expect(JSON.parse(manifest)).toMatchObject({ hashes, version, hashesSha256, hashesRoot });
  expect(blocksOf("version")[0]).toEqual(written.versionLines);
  expect(blocksOf("key")[0]).toEqual([`ed25519:${RAW_PUBLIC_KEY.toString("base64")}`]);
  expect(isSigned(manifest)).toBe(true);
  expect(isSigned(manifest.replace("text/plain", "text/html_"))).toBe(false);
  expect(manifest.endsWith(`,"crc32":"${crcOf(manifest)}"}`)).toBe(true);
  expect([2, 3, 4].map((row) => rowsOver([0, 1], [row])[0])).toEqual([
    [3, 2],
    [2, 3],
    [5, 4],
  ]);
});

test("the frames of the page are ours", () => {
  const [cached, end] = blocksOf("frames").map((lines) => lines.map((line) => line.replaceAll(" ", "")).join(""));
  const shards = blocksOf("chunks")[0]!.map((line) => Buffer.from(line.split(/\s+/)[2]!, "hex").subarray(8, 13));
  const ours = [0, 2].map((chunk) => encodeFrame("chunk", 1, chunk, shards[chunk]!));
  expect(cached).toBe(Buffer.concat(ours).toString("hex"));
  expect(end).toBe(Buffer.from(encodeFrame("end", 0, 0, new Uint8Array(0))).toString("hex"));
});

test.each([
  [4, 2, 1000, 2345],
  [9, 3, 4096, 4096 * 3],
  // Shards of three blocks and of two.
  [2, 1, 300_000, 500_000],
  [3, 3, 16, 100],
  [1, 2, 10, 25],
  [5, 1, 7, 20],
])(
  "what `agarose put` stores with %i+%i is read by the second implementation, from any k chunks",
  async (k, m, stripeBytes, bytes) => {
    const key = `second/${k}+${m}`;
    const body = randomBytes(bytes);
    const config = { ...world.config, code: { k, m }, stripeBytes, survive: { regions: 0, providers: 0 } };
    await world.put(key, body, { config });
    const manifest = JSON.parse((await world.read("tokyo", `manifests/${encodedKey(key)}@.json`)).toString());
    const written = encode(key, body, k, m, stripeBytes, manifest.upload);
    const { hashes, version, hashesSha256, hashesRoot } = written;
    expect(manifest).toMatchObject({ hashes, version, hashesSha256, hashesRoot, bytes, k, m, stripeBytes });
    const stored = await Promise.all(written.names.map((name, chunk) => world.read(manifest.placement[chunk], name)));
    expect(stored.every((chunk, index) => chunk.equals(written.chunks[index]!))).toBe(true);
    if (written.leaves) {
      expect(manifest.leaves).toEqual(REGIONS);
      const lists = await Promise.all(REGIONS.map((region) => world.read(region, written.leafName)));
      expect(lists.every((list) => list.equals(written.leaves!))).toBe(true);
    } else expect(manifest).not.toHaveProperty("leaves");
    // The last k chunks: as much parity as there is.
    const present = Array.from({ length: k }, (_, i) => m + i);
    expect(decode(stored, present, k, stripeBytes, bytes).equals(body)).toBe(true);
    expect(manifest.placement).toEqual(stored.map((_, chunk) => REGIONS[chunk % REGIONS.length]));
  },
);

test.each([0, 1, 16_384])("an inline object of %i bytes is read by the second implementation", async (bytes) => {
  const body = randomBytes(bytes);
  const config = { ...world.config, code: "auto" as const, stripeBytes: 65_536 };
  await world.put("second/inline", body, { config });
  const manifest = JSON.parse((await world.read("tokyo", "manifests/second/inline@.json")).toString());
  expect(Buffer.from(manifest.inline, "base64").equals(body)).toBe(true);
  const none = sha256(Buffer.alloc(0)).toString("hex");
  const content = ["agarose/2", "second/inline", sha256(body).toString("hex"), bytes, "1+0", "65536/65536", none];
  expect(manifest).toMatchObject({
    bytes,
    k: 1,
    m: 0,
    placement: [],
    hashes: [],
    requires: ["inline"],
    hashesSha256: none,
    hashesRoot: none,
    version: sha256(Buffer.from(content.map((line) => `${line}\n`).join("")))
      .toString("hex")
      .slice(0, 32),
  });
  expect(await world.names("chunks/second/inline@")).toEqual([]);
});

/** The lines of every fenced block of a kind. */
function blocksOf(kind: string): string[][] {
  const blocks = Array.from(page.matchAll(new RegExp(`\`\`\`${kind}\\n([\\s\\S]*?)\\n\`\`\``, "g")));
  return blocks.map((match) => match[1]!.split("\n"));
}

function crcOf(manifest: string): string {
  const before = manifest.slice(0, manifest.lastIndexOf(',"crc32":"'));
  return crc32(Buffer.from(before)).toString(16).padStart(8, "0");
}

function encode(key: string, body: Buffer, k: number, m: number, stripeBytes: number, upload: string) {
  const rows = rowsOver(indices(k), indices(k + m));
  const chunks: Buffer[][] = indices(k + m).map(() => []);
  const hashes: Buffer[] = [];
  const leaves: Buffer[] = [];
  for (let start = 0; start < body.length; start += stripeBytes) {
    const data = body.subarray(start, start + stripeBytes);
    const shardBytes = Math.ceil(data.length / k);
    const padded = Buffer.concat([data, Buffer.alloc(k * shardBytes - data.length)]);
    const shards = indices(k).map((i) => padded.subarray(i * shardBytes, (i + 1) * shardBytes));
    const coded = rows.map((row) => combine(row, shards));
    coded.forEach((shard, i) => chunks[i]!.push(shard));
    hashes.push(Buffer.concat(coded.map(shardHash)));
    leaves.push(...coded.flatMap((shard) => blocksOfShard(shard).map(sha256)));
  }
  const hashesSha256 = sha256(Buffer.concat(hashes)).toString("hex");
  const content = [encodedKey(key), sha256(body).toString("hex"), String(body.length)];
  const versionLines = ["agarose/2", ...content, `${k}+${m}`, `${stripeBytes}/65536`, hashesSha256];
  const version = sha256(Buffer.from(versionLines.map((line) => `${line}\n`).join("")))
    .toString("hex")
    .slice(0, 32);
  return {
    chunks: chunks.map((shards) => Buffer.concat(shards)),
    hashes: hashes.map((stripe) => stripe.toString("base64")),
    hashesSha256,
    hashesRoot: merkleRoot(hashes).toString("hex"),
    versionLines,
    version,
    leaves: Math.ceil(stripeBytes / k) > 65_536 ? Buffer.concat(leaves) : undefined,
    leafName: `chunks/${encodedKey(key)}@${upload}/256`,
    names: indices(k + m).map((i) => `chunks/${encodedKey(key)}@${upload}/${i}`),
  };
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

function shardHash(shard: Buffer): Buffer {
  if (shard.length <= 65_536) return sha256(shard);
  return sha256(Buffer.concat(blocksOfShard(shard).map(sha256)));
}

function blocksOfShard(shard: Buffer): Buffer[] {
  return indices(Math.ceil(shard.length / 65_536)).map((i) => shard.subarray(i * 65_536, (i + 1) * 65_536));
}

/** RFC 6962, section 2.1. */
function merkleRoot(leaves: Buffer[]): Buffer {
  if (leaves.length === 1) return sha256(Buffer.concat([Buffer.of(0), leaves[0]!]));
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return sha256(Buffer.concat([Buffer.of(1), merkleRoot(leaves.slice(0, split)), merkleRoot(leaves.slice(split))]));
}

function isSigned(manifest: string): boolean {
  const { hashes: _hashes, signature, crc32: _crc32, ...signed } = JSON.parse(manifest);
  const content = Buffer.from(`agarose-manifest/2\n${sortedJson(signed)}`);
  const value = Buffer.from(signature.value, "base64");
  return signature.keyId === KEY_ID && verify(null, content, createPublicKey(PRIVATE_KEY), value);
}

/** RFC 8785, for what manifests consist of. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => {
    if (typeof field !== "object" || field === null || Array.isArray(field)) return field;
    return Object.fromEntries(Object.entries(field).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function decode(chunks: Buffer[], present: number[], k: number, stripeBytes: number, bytes: number): Buffer {
  const matrix = rowsOver(present, indices(k));
  const stripes: Buffer[] = [];
  for (let s = 0; s * stripeBytes < bytes; s++) {
    const dataBytes = Math.min(stripeBytes, bytes - s * stripeBytes);
    const offset = s * Math.ceil(stripeBytes / k);
    const shards = present.map((chunk) => chunks[chunk]!.subarray(offset, offset + Math.ceil(dataBytes / k)));
    stripes.push(Buffer.concat(matrix.map((row) => combine(row, shards))).subarray(0, dataBytes));
  }
  return Buffer.concat(stripes);
}

/** Coefficients of each wanted row over the rows R: v(w) * V(R)^-1, by solving x * V(R) = v(w). */
function rowsOver(present: number[], wanted: number[]): number[][] {
  return wanted.map((w) => {
    // Unknowns x_j; equation c says: sum over j of x_j * present_j^c = w^c.
    const equations = present.map((_, c) => [...present.map((r) => power(r, c)), power(w, c)]);
    const size = present.length;
    for (let column = 0; column < size; column++) {
      const pivot = equations.findIndex((equation, at) => at >= column && equation[column] !== 0);
      [equations[column], equations[pivot]] = [equations[pivot]!, equations[column]!];
      const scale = power(equations[column]![column]!, 254);
      equations[column] = equations[column]!.map((value) => times(value, scale));
      for (let at = 0; at < size; at++) {
        const factor = equations[at]![column]!;
        if (at === column || factor === 0) continue;
        equations[at] = equations[at]!.map((value, i) => value ^ times(factor, equations[column]![i]!));
      }
    }
    return equations.map((equation) => equation[size]!);
  });
}

function combine(row: number[], shards: Buffer[]): Buffer {
  const sum = Buffer.alloc(shards[0]!.length);
  row.forEach((factor, i) => shards[i]!.forEach((byte, at) => (sum[at]! ^= times(factor, byte))));
  return sum;
}

/** Multiplication of polynomials over GF(2), reduced by 0x11D. */
function times(a: number, b: number): number {
  let result = 0;
  for (let bit = 0; bit < 8; bit++) {
    if (b & (1 << bit)) result ^= a << bit;
  }
  for (let bit = 14; bit >= 8; bit--) if (result & (1 << bit)) result ^= 0x11d << (bit - 8);
  return result;
}

function power(base: number, exponent: number): number {
  return indices(exponent).reduce((result) => times(result, base), 1);
}

function indices(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

function encodedKey(key: string): string {
  return Array.from(Buffer.from(key), (byte) => {
    const character = String.fromCharCode(byte);
    return /[A-Za-z0-9\-._~/]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");
}
