/**
 * A stored object as the source of a put, by the reader that all reads use: it verifies every shard, and holds the
 * window of one read in memory.
 */
import type { OpenedObject } from "@agarose/core/content";
import type { Manifest } from "@agarose/core/format";
import { openedContent } from "../encryption/secrets-of.ts";
import { openObject, type ReadParts } from "../objects/get-object.ts";
import type { FileHash, Source, SourceReader } from "./file-source.ts";

/**
 * The plain content of the version that `manifest` names. Opening it throws as `openedContent` does, and reading it
 * as `openObject` does.
 */
export function objectSource(manifest: Manifest, context: ReadParts): Source {
  return { open: async () => new ObjectReader(manifest, await openedContent(manifest, context.config), context) };
}

/** The stored bytes of the version that `manifest` names: its cells or segments, where it has them. */
export function storedSource(manifest: Manifest, context: ReadParts): Source {
  return { open: async () => new ObjectReader(manifest, undefined, context) };
}

/** One read from the start to the end. Any other position begins another one, but a small object is kept. */
class ObjectReader implements SourceReader {
  readonly known: FileHash;
  readonly #manifest: Manifest;
  readonly #opened: OpenedObject | undefined;
  readonly #context: ReadParts;
  #stop = new AbortController();
  #parts: AsyncIterator<Uint8Array, unknown> | undefined;
  #rest: Uint8Array = new Uint8Array();
  #position = 0;
  #whole: Buffer | undefined;

  constructor(manifest: Manifest, opened: OpenedObject | undefined, context: ReadParts) {
    const { bytes, sha256 } = opened?.shown ?? manifest;
    this.known = { bytes, sha256 };
    this.#manifest = manifest;
    this.#opened = opened;
    this.#context = context;
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    const { bytes } = this.known;
    if (bytes > this.#manifest.stripeBytes) return this.#read(target, position);
    if (!this.#whole) {
      const whole = Buffer.alloc(bytes);
      this.#whole = whole.subarray(0, await this.#read(whole, 0));
    }
    return this.#whole.subarray(position).copy(target);
  }

  async #read(target: Uint8Array, position: number): Promise<number> {
    const wanted = Math.max(0, Math.min(target.length, this.known.bytes - position));
    if (wanted === 0) return 0;
    if (!this.#parts || position !== this.#position) await this.#begin(position);
    let filled = 0;
    while (filled < wanted) {
      if (this.#rest.length === 0) {
        const { done, value } = await this.#parts!.next();
        if (done) break;
        this.#rest = value;
      }
      const part = this.#rest.subarray(0, wanted - filled);
      target.set(part, filled);
      filled += part.length;
      this.#rest = this.#rest.subarray(part.length);
    }
    this.#position = position + filled;
    return filled;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    // A body that is not read to its end would hold its requests.
    await this.#parts?.return?.().catch(() => {});
    this.#parts = undefined;
  }

  async #begin(position: number): Promise<void> {
    await this.close();
    this.#stop = new AbortController();
    const wanted = { start: position, end: this.known.bytes };
    const signal = AbortSignal.any([this.#context.signal, this.#stop.signal]);
    const opened = this.#opened;
    const range = opened?.stored(wanted) ?? (position > 0 ? wanted : undefined);
    const { body } = await openObject(this.#manifest, range, { ...this.#context, signal });
    this.#parts = (opened?.content(wanted, body) ?? body)[Symbol.asyncIterator]();
    this.#rest = new Uint8Array();
    this.#position = position;
  }
}
