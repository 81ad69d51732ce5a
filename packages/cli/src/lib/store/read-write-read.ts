/**
 * Conditions for a store that does not obey them: what is there is read just before a write, and again just after it.
 *
 * Two writers at the same moment can both succeed in one region. A put needs a majority of the regions, so they
 * clash in those that do obey conditions. Where none does, the window is the time of one write.
 */
import { AgaroseError, type FetchedResponse } from "@agarose/core";
import type { RegionConfig } from "../config.ts";
import type { GetOptions, ListedObject, PutBody, PutOptions, PutReceipt, Store } from "./store.ts";

/** A store whose conditional requests are made of plain ones. */
export class ReadWriteReadStore implements Store {
  readonly region: RegionConfig;
  readonly #store: Store;

  constructor(store: Store) {
    this.region = store.region;
    this.#store = store;
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
    const after = await this.#read(name, plain.signal);
    const isOurs = after !== undefined && body instanceof Uint8Array && after.bytes.equals(body);
    if (!isOurs) throw this.#refusal(name, "after");
    return receipt;
  }

  list(prefix: string, signal?: AbortSignal, after?: string): AsyncIterable<ListedObject> {
    return this.#store.list(prefix, signal, after);
  }

  remove(names: readonly string[]): Promise<{ name: string; problem: string }[]> {
    return this.#store.remove(names);
  }

  async removeMatching(name: string, etag: string): Promise<void> {
    const before = await this.#read(name);
    if (!before || (etag !== "*" && before.etag !== etag)) throw this.#refusal(name, "before");
    const [failed] = await this.#store.remove([name]);
    if (failed) throw new AgaroseError("STORE_FAILED", failed.problem, { region: this.region.name, name });
  }

  close(): void {
    this.#store.close();
  }

  async #read(name: string, signal?: AbortSignal): Promise<{ bytes: Buffer; etag: string | undefined } | undefined> {
    const { status, headers, body } = await this.#store.get(name, signal && { signal });
    if (status === 404) return undefined;
    if (status !== 200) {
      await body?.cancel();
      const message = `region ${this.region.name} answered ${status} for ${name}: retry later`;
      throw new AgaroseError("SOURCE_FAILED", message, { region: this.region.name, status });
    }
    const bytes = Buffer.from(await new Response(body as BodyInit | null).arrayBuffer());
    return { bytes, etag: headers.get("etag") ?? undefined };
  }

  /** What a store that obeys conditions would have answered. */
  #refusal(name: string, when: "before" | "after"): AgaroseError {
    const message = `region ${this.region.name} holds something else under ${name}, read just ${when} the write`;
    return new AgaroseError("STORE_FAILED", message, { region: this.region.name, status: 412 });
  }
}
