import type { Codec } from "../../src/codec.ts";

/**
 * A Reed-Solomon code in the fewest lines, for tests only: shard i holds the values at point i of the polynomial of
 * degree < k through the data shards, so any k shards give any other by Lagrange's formula over GF(2^8).
 */
export const referenceCodec: Codec = {
  encode: (data, rows) =>
    interpolate(
      data.map((bytes, index) => ({ index, bytes })),
      rows,
    ),
  reconstruct(k, shards, wanted) {
    if (shards.length < k) throw new Error(`reference codec needs ${k} shards, got ${shards.length}`);
    return interpolate(shards.slice(0, k), wanted);
  },
};

function interpolate(
  points: readonly { readonly index: number; readonly bytes: Uint8Array }[],
  wanted: readonly number[],
): Uint8Array[] {
  return wanted.map((x) => {
    const result = new Uint8Array(points[0]!.bytes.length);
    for (const { index: xi, bytes } of points) {
      let factor = 1;
      for (const { index: xj } of points) if (xj !== xi) factor = multiply(factor, divide(x ^ xj, xi ^ xj));
      const product = Uint8Array.from({ length: 256 }, (_, byte) => multiply(factor, byte));
      for (let i = 0; i < result.length; i++) result[i]! ^= product[bytes[i]!]!;
    }
    return result;
  });
}

const EXP = new Uint8Array(510);
const LOG = new Uint8Array(256);
for (let power = 0, value = 1; power < 255; power++) {
  EXP[power] = EXP[power + 255] = value;
  LOG[value] = power;
  value = (value << 1) ^ (value & 0x80 ? 0x11d : 0);
}

function multiply(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : EXP[LOG[a]! + LOG[b]!]!;
}

function divide(a: number, b: number): number {
  return a === 0 ? 0 : EXP[LOG[a]! + 255 - LOG[b]!]!;
}
