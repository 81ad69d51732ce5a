/** `zarrita`, as it is, reads windows of a sharded array by ranges. A shard that is not there is filled. */
import type * as zarrita from "zarrita";
import { addLibrary } from "../fixtures/library.ts";
import { showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";

/** Of the array, of a shard, and of a chunk inside of it. */
const [SIDE, SHARD, CHUNK] = [2_000, 1_000, 250];
const FILL = 7;

/** The library, as a global of the page. */
declare const library: typeof zarrita;

const valueAt = (row: number, column: number): number => (31 * row + 17 * column) % 65_521;

const bytes = { name: "bytes", configuration: { endian: "little" } };
const METADATA = {
  zarr_format: 3,
  node_type: "array",
  shape: [SIDE, SIDE],
  data_type: "uint16",
  chunk_grid: { name: "regular", configuration: { chunk_shape: [SHARD, SHARD] } },
  chunk_key_encoding: { name: "default", configuration: { separator: "/" } },
  fill_value: FILL,
  codecs: [
    {
      name: "sharding_indexed",
      configuration: { chunk_shape: [CHUNK, CHUNK], codecs: [bytes], index_codecs: [bytes], index_location: "end" },
    },
  ],
  attributes: {},
};

/** Chunks, and behind them where each begins and how long it is (version 3 of the format). */
function shardAt(top: number, left: number): Uint8Array {
  const across = SHARD / CHUNK;
  const length = 2 * CHUNK * CHUNK;
  const shard = Buffer.alloc(across * across * (length + 16));
  for (let i = 0; i < across * across; i++) {
    const [y, x] = [top + CHUNK * Math.floor(i / across), left + CHUNK * (i % across)];
    for (let j = 0; j < CHUNK * CHUNK; j++) {
      shard.writeUInt16LE(valueAt(y + Math.floor(j / CHUNK), x + (j % CHUNK)), i * length + 2 * j);
    }
    const entry = across * across * length + 16 * i;
    shard.writeBigUInt64LE(BigInt(i * length), entry);
    shard.writeBigUInt64LE(BigInt(length), entry + 8);
  }
  return shard;
}

test("zarrita reads a window that lies in three shards and in one that is missing", async ({ browser, world }) => {
  const files = {
    "zarr/heights/zarr.json": Buffer.from(JSON.stringify(METADATA)),
    "zarr/heights/c/0/0": shardAt(0, 0),
    "zarr/heights/c/0/1": shardAt(0, SHARD),
    "zarr/heights/c/1/0": shardAt(SHARD, 0),
  };
  const [from, to] = [SHARD - 3, SHARD + 3];
  const windows = await showSame(browser, world, files, async (page) => {
    await addLibrary(page, 'export * from "zarrita";');
    return page.evaluate(
      async ([start, end]) => {
        const read = async (useSuffixRequest: boolean): Promise<number[]> => {
          const store = new library.FetchStore(new URL("/ec/zarr/heights", location.href), { useSuffixRequest });
          const heights = await library.open(store, { kind: "array" });
          const window = await library.get(heights, [library.slice(start, end), library.slice(start, end)]);
          return Array.from(window.data as Uint16Array);
        };
        return { byLength: await read(false), bySuffix: await read(true) };
      },
      [from, to] as const,
    );
  });
  const wanted = Array.from({ length: (to - from) ** 2 }, (_, i) => {
    const [row, column] = [from + Math.floor(i / (to - from)), from + (i % (to - from))];
    return row >= SHARD && column >= SHARD ? FILL : valueAt(row, column);
  });
  expect(windows).toEqual({ byLength: wanted, bySuffix: wanted });
});
