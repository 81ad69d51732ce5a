/** A part of a cache that a policy keeps in its own order. */
import type { SnapshotReader } from "../policy/snapshot.ts";

/** Objects in the order in which they came or were last touched, with their total size. */
export class Segment {
  size = 0;
  /** Size by object, oldest first. */
  readonly #recent = new Map<number, number>();
  readonly #sizeOf: (object: number) => number;

  constructor(sizeOf: (object: number) => number, state?: SnapshotReader) {
    this.#sizeOf = sizeOf;
    for (const object of state?.objectList() ?? []) this.add(object);
  }

  has(object: number): boolean {
    return this.#recent.has(object);
  }

  /** Makes the object the most recent one; false when it is not here. */
  touch(object: number): boolean {
    const size = this.#recent.get(object);
    if (size === undefined) return false;
    this.#recent.delete(object);
    this.#recent.set(object, size);
    return true;
  }

  add(object: number): void {
    this.#recent.set(object, this.#sizeOf(object));
    this.size += this.#sizeOf(object);
  }

  remove(object: number): void {
    this.size -= this.#recent.get(object) ?? 0;
    this.#recent.delete(object);
  }

  /** Oldest first. */
  objects(): Iterable<number> {
    return this.#recent.keys();
  }

  oldest(): number | undefined {
    return this.#recent.keys().next().value;
  }

  removeOldest(): number {
    const oldest = this.oldest()!;
    this.remove(oldest);
    return oldest;
  }
}
