/**
 * A stored object as the source of a repair: read from any k of its chunks, in order, without a copy on disk.
 */
import type { Manifest } from "@agarose/core";
import { openObject, type GetContext } from "../../lib/objects/get-object.ts";
import type { SourceReader } from "../../lib/objects/upload/file-source.ts";

/** Reads an object from its chunks. Quick from the start to the end; any other position begins another read. */
export class ObjectReader implements SourceReader {
  readonly #manifest: Manifest;
  readonly #context: GetContext;
  #parts: AsyncIterator<Uint8Array> | undefined;
  #rest: Uint8Array = new Uint8Array();
  #at = -1;

  constructor(manifest: Manifest, context: GetContext) {
    this.#manifest = manifest;
    this.#context = context;
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    if (position !== this.#at) await this.#open(position);
    let filled = 0;
    while (filled < target.length) {
      if (this.#rest.length === 0) {
        const { done, value } = await this.#parts!.next();
        if (done) break;
        this.#rest = value;
      }
      const taken = this.#rest.subarray(0, target.length - filled);
      target.set(taken, filled);
      this.#rest = this.#rest.subarray(taken.length);
      filled += taken.length;
    }
    this.#at = position + filled;
    return filled;
  }

  async close(): Promise<void> {
    await this.#parts?.return?.();
    this.#parts = undefined;
  }

  async #open(position: number): Promise<void> {
    await this.close();
    const range = position === 0 ? undefined : { start: position, end: this.#manifest.bytes };
    const { body } = await openObject(this.#manifest, range, this.#context);
    this.#parts = body[Symbol.asyncIterator]();
    this.#rest = new Uint8Array();
    this.#at = position;
  }
}
