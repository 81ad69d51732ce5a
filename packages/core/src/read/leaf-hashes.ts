/** The leaf hashes of stripes, by which the blocks of a part are verified. The pieces of a stripe share one request. */
import { leafShape } from "../format/manifest/index.ts";
import type { ReadContext, ReadTarget } from "./read-options.ts";
import type { StripeReader } from "./stripe-reader.ts";

/** The leaf lists of one object, from memory or from a source. */
export class LeafHashes {
  readonly #target: ReadTarget;
  readonly #context: ReadContext;
  readonly #reader: StripeReader;
  readonly #lists = new Map<number, Promise<Uint8Array>>();

  constructor(target: ReadTarget, context: ReadContext, reader: StripeReader) {
    this.#target = target;
    this.#context = context;
    this.#reader = reader;
  }

  /** Resolves to the verified leaf list of a stripe. */
  of(stripe: number, signal: AbortSignal): Promise<Uint8Array> {
    const { manifest } = this.#target;
    let list = this.#lists.get(stripe);
    if (!list) {
      const read = (): Promise<Uint8Array> => this.#reader.leaves(stripe, signal);
      const bytes = leafShape(manifest, stripe).shardBytes;
      list = this.#context.memory?.read([`${manifest.version}/${stripe}`], bytes, read, signal) ?? read();
      this.#lists.set(stripe, list);
    }
    return list;
  }
}
