/**
 * PMTiles archives, version 3 (https://github.com/protomaps/PMTiles, "spec/v3"): where the bytes of a tile are. The
 * library of that name would add a tenth to the Worker.
 */
import { AgaroseError } from "@agarose/core";
import { readChecked } from "@agarose/core/sources";

/** The facts in an archive's header, which is at its start. */
export interface ArchiveHeader {
  readonly root: Part;
  readonly leavesOffset: number;
  readonly tilesOffset: number;
  readonly directoryCompression: number;
  readonly tileCompression: number;
  readonly contentType: string;
}

/** Bytes of an archive, from a place that its holder knows. */
export interface Part {
  readonly offset: number;
  readonly length: number;
}

/** A line of a directory: where a run of tiles is, or with no run, the directory for ids from there on. */
export interface Entry extends Part {
  readonly id: number;
  readonly run: number;
}

/** The header, and the root directory behind it, are within these bytes. */
export const START_BYTES = 16 * 1024;
/** Of a directory or a tile, compressed or not: an archive may say anything. */
export const PART_BYTES_MAX = 8 * 1024 * 1024;
const HEADER_BYTES = 127;
const TYPES: Readonly<Record<number, string>> = {
  1: "application/vnd.mapbox-vector-tile",
  2: "image/png",
  3: "image/jpeg",
  4: "image/webp",
  5: "image/avif",
};
/** Numbers of compressions. */
const UNKNOWN = 0;
const NONE = 1;
const GZIP = 2;
const ZOOM_MAX = 26;

/** The number of a tile on the Hilbert curve, behind those of lower zooms. Throws REQUEST_INVALID outside a zoom. */
export function tileIdOf(z: number, x: number, y: number): number {
  if (z > ZOOM_MAX || x >= 2 ** z || y >= 2 ** z) throw notTile(`${z}/${x}/${y} is outside the zooms 0 to ${ZOOM_MAX}`);
  let id = (4 ** z - 1) / 3;
  for (let side = 2 ** (z - 1); side >= 1; side /= 2) {
    const right = (x & side) > 0 ? 1 : 0;
    const lower = (y & side) > 0 ? 1 : 0;
    id += side * side * ((3 * right) ^ lower);
    if (lower === 1) continue;
    if (right === 1) [x, y] = [side - 1 - x, side - 1 - y];
    [x, y] = [y, x];
  }
  return id;
}

/** Throws REQUEST_INVALID for what is no archive of this version. */
export function headerOf(start: Uint8Array): ArchiveHeader {
  const isArchive = start.length >= HEADER_BYTES && new TextDecoder().decode(start.subarray(0, 7)) === "PMTiles";
  if (!isArchive || start[7] !== 3) throw notTile("the object is none of version 3");
  const view = new DataView(start.buffer, start.byteOffset);
  const number = (at: number): number => Number(view.getBigUint64(at, true));
  return {
    root: { offset: number(8), length: number(16) },
    leavesOffset: number(40),
    tilesOffset: number(56),
    directoryCompression: start[97]!,
    tileCompression: start[98]!,
    contentType: TYPES[start[99]!] ?? "application/octet-stream",
  };
}

/** The entries of a directory, which is written as one field of all after the other. Throws REQUEST_INVALID. */
export function directoryOf(bytes: Uint8Array): Entry[] {
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw notTile(`a directory of ${bytes.length} bytes ends early`);
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  };
  const count = next();
  if (count > bytes.length) throw notTile(`a directory has ${count} entries in ${bytes.length} bytes`);
  const column = (): number[] => Array.from({ length: count }, next);
  const [steps, runs, lengths, offsets] = [column(), column(), column(), column()];
  let [id, end] = [0, 0];
  return steps.map((step, i) => {
    id += step;
    // 0 means right behind the one before; others are offsets plus 1.
    const offset = offsets[i] === 0 && i > 0 ? end : offsets[i]! - 1;
    end = offset + lengths[i]!;
    return { id, run: runs[i]!, length: lengths[i]!, offset };
  });
}

/** The entry that a tile is in, or that leads to it. */
export function entryFor(id: number, entries: readonly Entry[]): Entry | undefined {
  const entry = entries.findLast((one) => one.id <= id);
  return entry && (entry.run === 0 || id < entry.id + entry.run) ? entry : undefined;
}

/** Decompresses by a method. Throws REQUEST_INVALID for methods other than gzip, and for too long results. */
export async function inflated(stored: Uint8Array, compression: number): Promise<Uint8Array> {
  if (compression === UNKNOWN || compression === NONE) return stored;
  if (compression !== GZIP) throw notTile(`it is compressed by method ${compression}, and ${GZIP} (gzip) is known`);
  const gzip = new DecompressionStream("gzip");
  const body = new Blob([stored as Uint8Array<ArrayBuffer>]).stream().pipeThrough(gzip) as ReadableStream<Uint8Array>;
  try {
    return await readChecked({ status: 200, headers: new Headers(), body }, (bytes) => {
      if (bytes > PART_BYTES_MAX) throw notTile(`a part has more than ${PART_BYTES_MAX} bytes`);
    });
  } catch (error) {
    throw error instanceof AgaroseError ? error : notTile("a part is not gzip");
  }
}

/** The error that says why there is no tile. */
export function notTile(problem: string): AgaroseError {
  return new AgaroseError("REQUEST_INVALID", `no tile of a PMTiles archive: ${problem}`);
}
