/**
 * Conditions for a store that does not obey them: what is there is read just before a write, and again just after it.
 *
 * Two writers at the same moment could both succeed in one region, so what is created is read once more when writes
 * that had begun before have arrived. The last of them has the name then, and each writer knows whether that is its
 * own. A writer that takes longer from its read to its write can still come in between.
 */
import { AgaroseError, systemClock, type Clock, type FetchedResponse } from "@agarose/core";
import { MANIFEST_BYTES_MAX } from "@agarose/core/format";
import type { RegionConfig } from "../config/config.ts";
import type { GetOptions, ListedObject, PresignedPut, PutBody, PutOptions, PutReceipt, Store } from "./store.ts";
import { recordIn } from "./small-record.ts";

/** How long a writer may take from its read to the arrival of its write, so that no other one misses it. */
export const SETTLE_MS = 500;

/** A store whose conditional requests are made of plain ones. */
export class ReadWriteReadStore implements Store {
  readonly region: RegionConfig;
  readonly #store: Store;
  readonly #clock: Pick<Clock, "after">;

  constructor(store: Store, clock: Pick<Clock, "after"> = systemClock) {
    this.region = store.region;
    this.#store = store;
    this.#clock = clock;
  }

  get(name: string, options?: GetOptions): Promise<FetchedResponse> {
    return this.#store.get(name, options);
  }

  head(name: string, signal?: AbortSignal): Promise<number | undefined> {
    return this.#store.head(name, signal);
  }

  async put(name: string, body: PutBody, options: PutOptions): Promise<PutReceipt> {
    const { ifMatch, ifNoneMatch, ...plain } = options;
    if (ifMatch === undefined && ifNoneMatch === undefined) return this.#store.put(name, body, plain);
    const before = await this.#read(name, plain.signal);
    const isThere = before !== undefined;
    if (ifNoneMatch !== undefined ? isThere : !isThere || before.etag !== ifMatch) throw this.#refusal(name, "before");
    const receipt = await this.#store.put(name, body, plain);
    await this.#checkOwn(name, body, plain.signal);
    if (ifNoneMatch !== undefined) {
      await new Promise<void>((resolve) => this.#clock.after(SETTLE_MS, resolve));
      await this.#checkOwn(name, body, plain.signal);
    }
    return receipt;
  }

  /** Whoever has the URL makes no reads around the write. */
  presignPut(
    name: string,
    { ifNoneMatch: _ifNoneMatch, ...plain }: PutOptions,
    seconds: number,
  ): Promise<PresignedPut> {
    return this.#store.presignPut!(name, plain, seconds);
  }

  list(prefix: string, signal?: AbortSignal, after?: string): AsyncIterable<ListedObject> {
    return this.#store.list(prefix, signal, after);
  }

  remove(names: readonly string[], signal?: AbortSignal): Promise<{ name: string; problem: string }[]> {
    return this.#store.remove(names, signal);
  }

  async removeMatching(name: string, etag: string, signal?: AbortSignal): Promise<void> {
    const before = await this.#read(name, signal);
    if (!before || (etag !== "*" && before.etag !== etag)) throw this.#refusal(name, "before");
    const [failed] = await this.#store.remove([name], signal);
    if (failed) throw new AgaroseError("STORE_FAILED", failed.problem, { region: this.region.name, name });
  }

  get takesChecksums(): boolean {
    return this.#store.takesChecksums ?? true;
  }

  get clockAheadMs(): number {
    return this.#store.clockAheadMs ?? 0;
  }

  close(): void {
    this.#store.close();
  }

  /** Rejects when the name has other bytes than those just written. */
  async #checkOwn(name: string, body: PutBody, signal: AbortSignal | undefined): Promise<void> {
    const after = await this.#read(name, signal);
    const isOurs = after !== undefined && body instanceof Uint8Array && after.bytes.equals(body);
    if (!isOurs) throw this.#refusal(name, "after");
  }

  #read(name: string, signal?: AbortSignal): ReturnType<typeof recordIn> {
    return recordIn(this.#store, name, "object", signal, MANIFEST_BYTES_MAX);
  }

  /** The answer that a store with conditions would have sent. */
  #refusal(name: string, when: "before" | "after"): AgaroseError {
    const message = `region ${this.region.name} holds something else under ${name}, read just ${when} the write`;
    return new AgaroseError("STORE_FAILED", message, { region: this.region.name, status: 412 });
  }
}
