import { afterEach, expect, test } from "vitest";

import { createEncoderPool, type EncoderPool } from "./encoder-pool.ts";
import { loadCodec } from "../node.ts";

const MIB = 1 << 20;
const pools: EncoderPool[] = [];

function newPool(threads?: number): EncoderPool {
  const pool = createEncoderPool(threads);
  pools.push(pool);
  return pool;
}

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

test("a large stripe is encoded in a thread: its buffer is taken, data and parity come back", async () => {
  const stripe = sampleStripe(4, MIB);
  const copy = stripe.slice();
  const encoding = newPool().encode(stripe, 4, [5, 4]);
  await Promise.resolve();
  expect(stripe.length).toBe(0);
  await expectEncoded(await encoding, copy, 4, [5, 4]);
});

test("a small stripe is encoded in place", async () => {
  const stripe = sampleStripe(3, 100);
  const { data, parity } = await newPool().encode(stripe, 3, [3, 8]);
  expect(data[0]!.buffer).toBe(stripe.buffer);
  await expectEncoded({ data, parity }, stripe, 3, [3, 8]);
});

test("more stripes than threads all arrive, each with its own rows", async () => {
  const pool = newPool(2);
  const stripes = Array.from({ length: 7 }, (_, i) => sampleStripe(2, MIB + i));
  const copies = stripes.map((stripe) => stripe.slice());
  const encoded = await Promise.all(stripes.map((stripe, i) => pool.encode(stripe, 2, [2 + i])));
  for (const [i, stripe] of encoded.entries()) await expectEncoded(stripe, copies[i]!, 2, [2 + i]);
});

test("errors of the codec cross the thread with code and details, and the thread keeps working", async () => {
  const pool = newPool(1);
  const error = { name: "AgaroseError", code: "SHARDS_INVALID", details: { index: 256, highest: 255 } };
  await expect(pool.encode(sampleStripe(2, MIB), 2, [256])).rejects.toMatchObject(error);
  const stripe = sampleStripe(2, MIB);
  const copy = stripe.slice();
  await expectEncoded(await pool.encode(stripe, 2, [2]), copy, 2, [2]);
});

test("a stripe that is not k shards of one length is refused before it is taken", async () => {
  const stripe = sampleStripe(1, 10);
  const error = { code: "SHARDS_INVALID", details: { bytes: 10, k: 3 } };
  await expect(newPool().encode(stripe, 3, [3])).rejects.toMatchObject(error);
  await expect(newPool().encode(stripe, 0, [3])).rejects.toMatchObject({ code: "CODE_INVALID", details: { k: 0 } });
  expect(stripe.length).toBe(10);
});

test("closing rejects what is under way, and the next use restarts the pool", async () => {
  const pool = newPool(1);
  const encoding = pool.encode(sampleStripe(2, MIB), 2, [2]);
  const rejected = expect(encoding).rejects.toMatchObject({ code: "INTERNAL" });
  // Encoding starts in a microtask; the thread needs milliseconds to start.
  await Promise.resolve();
  await pool.close();
  await rejected;
  const stripe = sampleStripe(2, MIB);
  const copy = stripe.slice();
  await expectEncoded(await pool.encode(stripe, 2, [2]), copy, 2, [2]);
});

async function expectEncoded(
  { data, parity }: { data: Uint8Array[]; parity: Uint8Array[] },
  stripe: Uint8Array,
  k: number,
  rows: number[],
): Promise<void> {
  const shardBytes = stripe.length / k;
  const shards = Array.from({ length: k }, (_, i) => stripe.subarray(i * shardBytes, (i + 1) * shardBytes));
  const expected = (await loadCodec()).encode(shards, rows);
  expect(Buffer.concat(data).equals(stripe)).toBe(true);
  expect(parity.map((bytes) => Buffer.from(bytes).equals(expected.shift()!))).toEqual(rows.map(() => true));
}

function sampleStripe(k: number, shardBytes: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: k * shardBytes }, (_, i) => (i * 2_654_435_761) >>> 13);
}
