/**
 * Snapshots of policies: lists of numbers behind a header that tells whose they are.
 *
 * `AGPO`, format (1 byte), checksum of what follows (4), number of objects (4), name (length in 1 byte, ASCII), then the
 * lists: element type (1), length (4), elements. Little-endian, as every runtime we know stores numbers.
 */

import { solverError } from "../errors.ts";

type Numbers = Float64Array | Float32Array | Int32Array;
type NumbersOf<T extends Numbers> = new (buffer: ArrayBuffer) => T;

const MAGIC = 0x4f504741;
const FORMAT = 1;
/** Their place here is the element type. */
const KINDS: readonly NumbersOf<Numbers>[] = [Float64Array, Float32Array, Int32Array];

/** Packs lists of numbers; a plain list counts as integers. `SnapshotReader` reads them back in the same order. */
export function packSnapshot(
  policy: string,
  objects: number,
  lists: readonly (Numbers | readonly number[])[],
): Uint8Array {
  const typed = lists.map((list) => (Array.isArray(list) ? Int32Array.from(list) : (list as Numbers)));
  const header = 14 + policy.length;
  const bytes = new Uint8Array(typed.reduce((sum, list) => sum + 5 + list.byteLength, header));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint8(4, FORMAT);
  view.setUint32(9, objects, true);
  view.setUint8(13, policy.length);
  for (let i = 0; i < policy.length; i++) view.setUint8(14 + i, policy.charCodeAt(i));
  let at = header;
  for (const list of typed) {
    view.setUint8(at, KINDS.indexOf(list.constructor as NumbersOf<Numbers>));
    view.setUint32(at + 1, list.length, true);
    bytes.set(new Uint8Array(list.buffer, list.byteOffset, list.byteLength), at + 5);
    at += 5 + list.byteLength;
  }
  view.setUint32(5, checksum(bytes.subarray(9)), true);
  return bytes;
}

/** Reads a snapshot list by list. Everything throws SNAPSHOT_INVALID on what another policy, or nobody, has packed. */
export class SnapshotReader {
  readonly policy: string;
  readonly objects: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at: number;

  constructor(policy: string, objects: number, bytes: Uint8Array) {
    this.policy = policy;
    this.objects = objects;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.length < 14) this.fail(`${bytes.length} bytes are too few`);
    if (this.#view.getUint32(0, true) !== MAGIC) this.fail("it is no snapshot of a policy");
    if (bytes[4] !== FORMAT) this.fail(`its format is ${bytes[4]}, not ${FORMAT}`);
    if (this.#view.getUint32(5, true) !== checksum(bytes.subarray(9))) this.fail("its checksum is wrong");
    this.#at = 14 + bytes[13]!;
    const name = String.fromCharCode(...bytes.subarray(14, this.#at));
    if (name !== policy) this.fail(`it is one of ${name}`);
    const held = this.#view.getUint32(9, true);
    if (held !== objects) this.fail(`it has ${held} objects, the cache ${objects}`);
  }

  /** The next list, copied; `length` is what it must have. */
  float64(length?: number): Float64Array {
    return this.#read(Float64Array, length);
  }

  float32(length?: number): Float32Array {
    return this.#read(Float32Array, length);
  }

  int32(length?: number): Int32Array {
    return this.#read(Int32Array, length);
  }

  /** The next list, of different objects. */
  objectList(): number[] {
    const list = [...this.#read(Int32Array)];
    if (new Set(list).size !== list.length) this.fail("an object is listed twice");
    if (list.some((object) => object < 0 || object >= this.objects)) this.fail("an object is out of range");
    return list;
  }

  /** Nothing may be left. */
  end(): void {
    if (this.#at !== this.#bytes.length) this.fail(`${this.#bytes.length - this.#at} bytes are left over`);
  }

  /** For what the lists cannot say of themselves. */
  fail(why: string): never {
    throw solverError(
      "SNAPSHOT_INVALID",
      `this snapshot is not one of policy ${this.policy}: ${why}; start without it`,
      {
        policy: this.policy,
        why,
      },
    );
  }

  #read<T extends Numbers>(kind: NumbersOf<T> & { readonly BYTES_PER_ELEMENT: number }, expected?: number): T {
    if (this.#at + 5 > this.#bytes.length) this.fail("a list is missing");
    if (KINDS[this.#bytes[this.#at]!] !== kind) this.fail(`a list of ${kind.name.toLowerCase()} is expected`);
    const length = this.#view.getUint32(this.#at + 1, true);
    const from = this.#at + 5;
    const to = from + length * kind.BYTES_PER_ELEMENT;
    if (to > this.#bytes.length) this.fail(`a list of ${length} numbers is cut off`);
    if (expected !== undefined && length !== expected) this.fail(`a list has ${length} numbers, not ${expected}`);
    this.#at = to;
    // A copy begins at a whole number of elements, which the packed list need not do.
    return new kind(this.#bytes.slice(from, to).buffer);
  }
}

/** FNV-1a: enough against truncation and mix-ups; whoever can write snapshots is trusted. */
function checksum(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
