/**
 * A second implementation of docs/reference/format.md, written from that page and without a line of ours, against the first.
 */
import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { encodeFrame, objectUrl } from "@agarose/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { REGIONS, startTestWorld, type World } from "./world.ts";

const PAGE = new URL("../../../docs/reference/format.md", import.meta.url);
const OBJECT = Buffer.from("Agarose is purified agar.");

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
  await world.put("docs/grüße.txt", OBJECT, { config, stores, contentType: "text/plain", headers, nowMs });
  const chunks = blocksOf("chunks")[0]!.map((line) => line.split(/\s+/));
  expect(chunks).toHaveLength(3);
  for (const [region, name, hex] of chunks) expect((await world.read(region!, name!)).toString("hex")).toBe(hex);
  const manifest = await world.read("dublin", "manifests/docs/gr%C3%BC%C3%9Fe.txt@.json");
  expect(manifest.toString()).toBe(blocksOf("json")[0]![0]);
  expect(page).toContain(objectUrl("https://s3.example/bucket", chunks[2]![1]!));
});

test("the example of the page is what its rules give", () => {
  const written = encode("docs/grüße.txt", OBJECT, 2, 1, 16);
  const lines = blocksOf("chunks")[0]!.map((line) => line.split(/\s+/));
  expect(written.chunks.map((chunk) => chunk.toString("hex"))).toEqual(lines.map(([, , hex]) => hex));
  expect(lines.map(([, name]) => name)).toEqual(written.names);
  const manifest = blocksOf("json")[0]![0]!;
  expect(JSON.parse(manifest).hashes).toEqual(written.hashes);
  expect(JSON.parse(manifest).version).toBe(written.version);
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
    const written = encode(key, body, k, m, stripeBytes);
    expect(manifest).toMatchObject({ version: written.version, hashes: written.hashes, bytes, k, m, stripeBytes });
    const stored = await Promise.all(written.names.map((name, chunk) => world.read(manifest.placement[chunk], name)));
    expect(stored.every((chunk, index) => chunk.equals(written.chunks[index]!))).toBe(true);
    // The last k chunks: as much parity as there is.
    const present = Array.from({ length: k }, (_, i) => m + i);
    expect(decode(stored, present, k, stripeBytes, bytes).equals(body)).toBe(true);
    expect(manifest.placement).toEqual(stored.map((_, chunk) => REGIONS[chunk % REGIONS.length]));
  },
);

/** The lines of every fenced block of a kind. */
function blocksOf(kind: string): string[][] {
  const blocks = Array.from(page.matchAll(new RegExp(`\`\`\`${kind}\\n([\\s\\S]*?)\\n\`\`\``, "g")));
  return blocks.map((match) => match[1]!.split("\n"));
}

function crcOf(manifest: string): string {
  const before = manifest.slice(0, manifest.lastIndexOf(',"crc32":"'));
  return crc32(Buffer.from(before)).toString(16).padStart(8, "0");
}

function encode(key: string, body: Buffer, k: number, m: number, stripeBytes: number) {
  const rows = rowsOver(indices(k), indices(k + m));
  const chunks: Buffer[][] = indices(k + m).map(() => []);
  const hashes: string[] = [];
  for (let start = 0; start < body.length; start += stripeBytes) {
    const data = body.subarray(start, start + stripeBytes);
    const shardBytes = Math.ceil(data.length / k);
    const padded = Buffer.concat([data, Buffer.alloc(k * shardBytes - data.length)]);
    const shards = indices(k).map((i) => padded.subarray(i * shardBytes, (i + 1) * shardBytes));
    const coded = rows.map((row) => combine(row, shards));
    coded.forEach((shard, i) => chunks[i]!.push(shard));
    hashes.push(Buffer.concat(coded.map((shard) => createHash("sha256").update(shard).digest())).toString("base64"));
  }
  const sha256 = createHash("sha256").update(body).digest("hex");
  const text = `agarose/1 ${sha256} ${k}+${m} ${stripeBytes}`;
  const version = createHash("sha256").update(text).digest("hex").slice(0, 32);
  const names = indices(k + m).map((i) => `chunks/${encodedKey(key)}@${version}/${i}`);
  return { chunks: chunks.map((shards) => Buffer.concat(shards)), hashes, version, names };
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
