/**
 * Buckets in memory for tests of the write protocol, whose listings can leave names out.
 */
import type { ListedObject } from "../src/buckets/store.ts";
import { BATCH_PREFIX } from "../src/commit/names.ts";

/** A bucket whose listings omit what `hides` says, and whose objects are as old as `modifiedMs` says. */
export class MemoryBucket {
  readonly region: { readonly name: string };
  readonly objects = new Map<string, Buffer>();
  hides: (name: string) => boolean = () => false;
  onPut: () => void = () => {};
  fails = false;
  modifiedMs = 0;

  constructor(name: string) {
    this.region = { name };
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    this.#answer();
    this.objects.set(name, Buffer.from(bytes));
    this.onPut();
  }

  async get(name: string) {
    this.#answer();
    const bytes = this.objects.get(name);
    return {
      status: bytes ? 200 : 404,
      headers: new Headers(),
      body: bytes ? new Blob([new Uint8Array(bytes)]).stream() : null,
    };
  }

  async *list(prefix: string, _signal: AbortSignal, after = ""): AsyncGenerator<ListedObject> {
    this.#answer();
    for (const name of [...this.objects.keys()].toSorted()) {
      if (!name.startsWith(prefix) || name <= after || this.hides(name)) continue;
      yield { name, bytes: this.objects.get(name)!.length, modifiedMs: this.modifiedMs };
    }
  }

  async remove(names: readonly string[]): Promise<[]> {
    this.#answer();
    for (const name of names) this.objects.delete(name);
    return [];
  }

  get batches(): string[] {
    return [...this.objects.keys()].filter((name) => name.startsWith(BATCH_PREFIX));
  }

  #answer(): void {
    if (this.fails) throw new Error("down");
  }
}
