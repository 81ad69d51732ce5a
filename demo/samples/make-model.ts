/**
 * Writes the model-sized sample: a safetensors file with the tensor table of a small vision transformer and seeded
 * random weights. It is not a trained model; what matters is its size, a header worth showing, and bytes that do not
 * compress. The same bytes come out on every machine.
 *
 * Format: 8 bytes little-endian header length, a JSON header padded with spaces to 8 bytes, then the tensors.
 */
import { open, rename, stat } from "node:fs/promises";

const SEED = 20170605;
const WIDTH = 384;
const BLOCKS = 5;
const CLASSES = 1000;
const PATCH = 16;
const PATCHES = (224 / PATCH) ** 2;

type Shape = readonly number[];

/** Writes the file (39 MB) unless one of the right length is there; returns its length in bytes. */
export async function writeModel(path: string): Promise<number> {
  const header = headerOf(tensors());
  const floats = tensors().reduce((sum, [, shape]) => sum + size(shape), 0);
  const bytes = header.length + 4 * floats;
  const there = await stat(path).catch(() => undefined);
  if (there?.size === bytes) return bytes;
  // Written under another name first, so that an interrupted start leaves nothing that looks complete.
  const part = `${path}.part`;
  const file = await open(part, "w");
  try {
    await file.write(header);
    const random = xorshift32(SEED);
    for (const [, shape] of tensors()) await file.write(weights(shape, random));
  } finally {
    await file.close();
  }
  await rename(part, path);
  return bytes;
}

function tensors(): [name: string, shape: Shape][] {
  const block = (i: number): [string, Shape][] => [
    [`blocks.${i}.norm1.weight`, [WIDTH]],
    [`blocks.${i}.norm1.bias`, [WIDTH]],
    [`blocks.${i}.attn.qkv.weight`, [3 * WIDTH, WIDTH]],
    [`blocks.${i}.attn.qkv.bias`, [3 * WIDTH]],
    [`blocks.${i}.attn.proj.weight`, [WIDTH, WIDTH]],
    [`blocks.${i}.attn.proj.bias`, [WIDTH]],
    [`blocks.${i}.norm2.weight`, [WIDTH]],
    [`blocks.${i}.norm2.bias`, [WIDTH]],
    [`blocks.${i}.mlp.fc1.weight`, [4 * WIDTH, WIDTH]],
    [`blocks.${i}.mlp.fc1.bias`, [4 * WIDTH]],
    [`blocks.${i}.mlp.fc2.weight`, [WIDTH, 4 * WIDTH]],
    [`blocks.${i}.mlp.fc2.bias`, [WIDTH]],
  ];
  return [
    ["cls_token", [1, 1, WIDTH]],
    ["pos_embed", [1, PATCHES + 1, WIDTH]],
    ["patch_embed.proj.weight", [WIDTH, 3, PATCH, PATCH]],
    ["patch_embed.proj.bias", [WIDTH]],
    ...Array.from({ length: BLOCKS }, (_, i) => block(i)).flat(),
    ["norm.weight", [WIDTH]],
    ["norm.bias", [WIDTH]],
    ["head.weight", [CLASSES, WIDTH]],
    ["head.bias", [CLASSES]],
  ];
}

function headerOf(list: readonly [string, Shape][]): Buffer {
  let offset = 0;
  const entries = list.map(([name, shape]) => {
    const start = offset;
    offset += 4 * size(shape);
    return [name, { dtype: "F32", shape, data_offsets: [start, offset] }];
  });
  const metadata = { format: "pt", note: `random weights, seed ${SEED}: a sample, not a trained model` };
  const json = JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) });
  const padded = json.padEnd(Math.ceil(json.length / 8) * 8);
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(padded.length));
  return Buffer.concat([head, Buffer.from(padded)]);
}

/** Uniform in [-a, a) with a as a Xavier initialiser would choose it. */
function weights(shape: Shape, random: () => number): Buffer {
  const count = size(shape);
  const bound = Math.sqrt(6 / ((shape[0] ?? 1) + count / (shape[0] ?? 1)));
  const bytes = Buffer.alloc(4 * count);
  for (let i = 0; i < count; i++) bytes.writeFloatLE((2 * random() - 1) * bound, 4 * i);
  return bytes;
}

function size(shape: Shape): number {
  return shape.reduce((product, length) => product * length, 1);
}

/** Marsaglia's 32-bit xorshift, as numbers in [0, 1). */
function xorshift32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
