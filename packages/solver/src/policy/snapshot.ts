/**
 * Snapshots of policies: lists of numbers behind a header that names the policy.
 *
 * `AGPO`, format (1 byte), checksum of the rest (4), number of objects (4), name (length in 1 byte, ASCII), then the
 * lists: element type (1), length (4), elements. All numbers are little-endian, as in every runtime that we support.
 */

import { SolverError } from "../errors.ts";

type Numbers = Float64Array | Float32Array | Int32Array;
type NumbersOf<T extends Numbers> = new (buffer: ArrayBuffer) => T;

const MAGIC = 0x4f504741;
const FORMAT = 1;
/** The element type is the index in this list. */
const KINDS: readonly NumbersOf<Numbers>[] = [Float64Array, Float32Array, Int32Array];

/** A list of numbers, or the parts of one. A plain list is packed as 32-bit integers. */
export type SnapshotList = Numbers | readonly number[] | { readonly parts: readonly Numbers[] };

/** Packs lists of numbers. `SnapshotReader` reads them in the same order. */
export function packSnapshot(policy: string, objects: number, lists: readonly SnapshotList[]): Uint8Array {
  const typed = lists.map((list): readonly Numbers[] => {
    if ("parts" in list) return list.parts;
    return [Array.isArray(list) ? Int32Array.from(list) : (list as Numbers)];
  });
  const header = 14 + policy.length;
  const bytesOf = (parts: readonly Numbers[]): number => parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const bytes = new Uint8Array(typed.reduce((sum, parts) => sum + 5 + bytesOf(parts), header));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint8(4, FORMAT);
  view.setUint32(9, objects, true);
  view.setUint8(13, policy.length);
  for (let i = 0; i < policy.length; i++) view.setUint8(14 + i, policy.charCodeAt(i));
  let at = header;
  for (const parts of typed) {
    view.setUint8(at, KINDS.indexOf(parts[0]!.constructor as NumbersOf<Numbers>));
    view.setUint32(at + 1, bytesOf(parts) / parts[0]!.BYTES_PER_ELEMENT, true);
    at += 5;
    for (const { buffer, byteOffset, byteLength } of parts) {
      bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
      at += byteLength;
    }
  }
  view.setUint32(5, checksum(bytes.subarray(9)), true);
  return bytes;
}

/** Reads a snapshot list by list. Every method throws SNAPSHOT_INVALID for bytes that this policy did not pack. */
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
    if (this.#view.getUint32(0, true) !== MAGIC) this.fail("it is not a snapshot of a policy");
    if (bytes[4] !== FORMAT) this.fail(`its format is ${bytes[4]}, not ${FORMAT}`);
    if (this.#view.getUint32(5, true) !== checksum(bytes.subarray(9))) this.fail("its checksum is wrong");
    this.#at = 14 + bytes[13]!;
    const name = String.fromCharCode(...bytes.subarray(14, this.#at));
    if (name !== policy) this.fail(`it is one of ${name}`);
    const held = this.#view.getUint32(9, true);
    if (held !== objects) this.fail(`it has ${held} objects, the cache ${objects}`);
  }

  /** Returns a copy of the next list, which must have `length` numbers if given. */
  float64(length?: number): Float64Array {
    return this.#read(Float64Array, length);
  }

  float32(length?: number): Float32Array {
    return this.#read(Float32Array, length);
  }

  int32(length?: number): Int32Array {
    return this.#read(Int32Array, length);
  }

  /** Returns the next list, which must hold different object numbers. */
  objectList(): number[] {
    const list = [...this.#read(Int32Array)];
    if (new Set(list).size !== list.length) this.fail("an object is listed twice");
    if (list.some((object) => object < 0 || object >= this.objects)) this.fail("an object is out of range");
    return list;
  }

  /** Throws if a list is left unread. */
  end(): void {
    if (this.#at !== this.#bytes.length) this.fail(`${this.#bytes.length - this.#at} bytes are left over`);
  }

  /** Throws SNAPSHOT_INVALID: for checks that go beyond types and lengths. */
  fail(why: string): never {
    throw new SolverError(
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
    // The copy aligns the elements, which the packed list does not.
    return new kind(this.#bytes.slice(from, to).buffer);
  }
}

/** FNV-1a: enough against truncation and mix-ups. Snapshots come from a trusted store. */
function checksum(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return hash >>> 0;
}
