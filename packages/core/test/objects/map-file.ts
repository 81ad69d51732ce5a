/**
 * A map as one file, which `pmtiles` reads by ranges
 * (https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md). Nothing in it is compressed.
 */
import { concat } from "../../src/format/hash-tree.ts";

const HEADER_BYTES = 127;

/** The place of a tile in the file: `zxyToTileId` of pmtiles. */
export type TileId = (z: number, x: number, y: number) => number;

/** A map of zoom levels 0 to 5 with a tile of `tileOf(id)` everywhere. */
export function mapFile(tileId: TileId, tileOf: (id: number) => Uint8Array): Uint8Array {
  const ids: number[] = [];
  for (let z = 0; z <= 5; z++) {
    for (let x = 0; x < 2 ** z; x++) for (let y = 0; y < 2 ** z; y++) ids.push(tileId(z, x, y));
  }
  ids.sort((a, b) => a - b);
  const tiles = ids.map(tileOf);
  const directory = Uint8Array.from([
    ...varint(ids.length),
    ...ids.flatMap((id, i) => varint(i === 0 ? id : id - ids[i - 1]!)),
    ...ids.flatMap(() => varint(1)),
    ...tiles.flatMap(({ length }) => varint(length)),
    // 0 means right behind the tile before; others are offsets plus 1.
    ...ids.flatMap((_, i) => varint(i === 0 ? 1 : 0)),
  ]);
  const metadata = new TextEncoder().encode("{}");
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  const start = new Uint8Array(header.buffer);
  start.set(new TextEncoder().encode("PMTiles"));
  start[7] = 3;
  const metadataAt = HEADER_BYTES + directory.length;
  const dataAt = metadataAt + metadata.length;
  const dataBytes = tiles.reduce((sum, { length }) => sum + length, 0);
  const sections = [HEADER_BYTES, directory.length, metadataAt, metadata.length, dataAt, 0, dataAt, dataBytes];
  for (const [i, value] of [...sections, ids.length, ids.length, ids.length].entries()) {
    header.setBigUint64(8 + 8 * i, BigInt(value), true);
  }
  // Clustered; directory and tiles without compression; tiles are PNG; zoom 0 to 5.
  start.set([1, 1, 1, 2, 0, 5], 96);
  return concat([start, directory, metadata, ...tiles]);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) + 128);
  }
}
