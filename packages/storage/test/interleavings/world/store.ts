/**
 * A bucket as one process sees it. A request travels to the bucket, is executed there, and its answer travels back.
 * Each part takes time, and each can get lost.
 */
import { AgaroseError, type ErrorCode, type FetchedResponse } from "@agarose/core";
import type { RegionConfig } from "../../../src/config/config.ts";
import type {
  GetOptions,
  ListedObject,
  PresignedPut,
  PutBody,
  PutOptions,
  PutReceipt,
  Store,
} from "../../../src/buckets/store.ts";
import type { Bucket, StoredObject } from "./bucket.ts";
import type { EventLoop } from "./event-loop.ts";
import { falseListing, isForgotten, liesOf, type Knowledge } from "./lies.ts";
import { noise } from "./noise.ts";
import { EPOCH_MS, type Process } from "./process.ts";

/**
 * - `refuse`: the region answers 503 and executes nothing.
 * - `cut`: connections break before the region executes anything.
 * - `deaf`: the region executes requests, and connections break before the answer.
 * - `hang`: the region does not answer. It executes half of the requests when it wakes up.
 */
export type FaultKind = "refuse" | "cut" | "deaf" | "hang";

/** A time in which a region misbehaves. */
export interface RegionFault {
  /** Index of the region. */
  readonly region: number;
  readonly kind: FaultKind;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The shared state of the stores of all processes. */
export interface Network {
  readonly seed: number;
  readonly loop: EventLoop;
  readonly buckets: readonly Bucket[];
  /** The fault of a region at this moment. */
  readonly faultOf: (region: number) => RegionFault | undefined;
  /** The region that lies at this moment. */
  readonly hostile: () => number | undefined;
  /** The knowledge of that region. */
  readonly known: Knowledge;
  /** Whether the time of faults is over, so that every request is quick. */
  readonly isHealed: () => boolean;
  /** Called around what a bucket executes, so that changes are known by their process. */
  readonly execute: <T>(process: Process, region: number, what: string, run: () => T) => T;
  readonly note: (process: Process, region: number, text: string) => void;
}

interface Answer {
  readonly status: number;
  readonly object?: StoredObject | undefined;
  readonly names?: readonly ListedObject[];
}

/** A bucket of the present SDK gives up after a minute without a byte. */
const IDLE_MS = 60_000;
const RETRY_MS = 100;
/** Small, so that other processes come between two pages. */
const PAGE_NAMES = 4;

export class SimulatedStore implements Store {
  readonly region: RegionConfig;
  readonly #index: number;
  readonly #process: Process;
  readonly #network: Network;
  readonly #attempts: number;

  constructor(region: RegionConfig, index: number, process: Process, network: Network, attempts: number) {
    this.region = region;
    this.#index = index;
    this.#process = process;
    this.#network = network;
    this.#attempts = attempts;
  }

  async get(name: string, { range, signal }: GetOptions = {}): Promise<FetchedResponse> {
    const execute = (bucket: Bucket): Answer => {
      const object = this.#look(name, bucket);
      return { status: object ? (range ? 206 : 200) : 404, object };
    };
    const { status, object } = await this.#request(`GET ${name}`, execute, signal, "SOURCE_FAILED");
    if (!object) return { status, headers: new Headers(), body: null };
    const bytes = range ? slice(object.bytes, range) : object.bytes;
    const headers = new Headers({ etag: object.etag, "content-length": String(bytes.length) });
    if (range) headers.set("content-range", `${range.replace("=", " ")}/${object.bytes.length}`);
    return { status, headers, body: streamOf(bytes) };
  }

  async head(name: string, signal?: AbortSignal): Promise<number | undefined> {
    const execute = (bucket: Bucket): Answer => {
      const object = this.#look(name, bucket);
      return { status: object ? 200 : 404, object };
    };
    const { status, object } = await this.#request(`HEAD ${name}`, execute, signal, "SOURCE_FAILED");
    if (status >= 500) throw this.#failure("SOURCE_FAILED", `for ${name}`, status);
    return object?.bytes.length;
  }

  async put(name: string, body: PutBody, { signal, ifMatch, ifNoneMatch }: PutOptions): Promise<PutReceipt> {
    const bytes = body instanceof Uint8Array ? body.slice() : await readAll(body);
    const execute = (bucket: Bucket): Answer => {
      if (this.#isHostile && isForgotten(this.#lie())) return { status: 200 };
      const status = bucket.put(name, bytes, { ifMatch, ifNoneMatch });
      return { status, object: bucket.objects.get(name) };
    };
    const condition = ifMatch ? " if it matches" : ifNoneMatch ? " if nothing is there" : "";
    const { status, object } = await this.#request(`PUT ${name}${condition}`, execute, signal, "STORE_FAILED");
    if (status !== 200) throw this.#failure("STORE_FAILED", `to store ${name}`, status);
    return { etag: object?.etag };
  }

  /** A page of the simulation takes the region and the name from it. */
  async presignPut(name: string): Promise<PresignedPut> {
    return { url: `s3:${this.#index}/${name}`, headers: {} };
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncGenerator<ListedObject> {
    let after = "";
    for (;;) {
      const from = after;
      const execute = (bucket: Bucket): Answer => {
        const names = bucket.list(prefix, from, PAGE_NAMES).map((name) => {
          const { bytes, modifiedMs, etag } = bucket.objects.get(name)!;
          return { name, bytes: bytes.length, modifiedMs: modifiedMs + EPOCH_MS, etag };
        });
        return { status: 200, names: this.#isHostile ? falseListing(prefix, names, this.#lie()) : names };
      };
      const answer = await this.#request(`LIST ${prefix} after ${from}`, execute, signal, "SOURCE_FAILED");
      if (!answer.names) throw this.#failure("SOURCE_FAILED", `to list ${prefix}`, answer.status);
      yield* answer.names;
      if (answer.names.length < PAGE_NAMES || this.#isHostile) return;
      after = answer.names.at(-1)!.name;
    }
  }

  async remove(names: readonly string[]): Promise<{ name: string; problem: string }[]> {
    if (names.length === 0) return [];
    const execute = (bucket: Bucket): Answer => {
      if (this.#isHostile && isForgotten(this.#lie())) return { status: 200 };
      for (const name of names) bucket.remove(name);
      return { status: 200 };
    };
    const all = (problem: string) => names.map((name) => ({ name, problem }));
    try {
      const { status } = await this.#request(`DELETE ${names.join(" ")}`, execute, undefined, "STORE_FAILED");
      return status === 200 ? [] : all(`status ${status}`);
    } catch (error) {
      return all((error as Error).message);
    }
  }

  async removeMatching(name: string, etag: string): Promise<void> {
    const execute = (bucket: Bucket): Answer => ({ status: bucket.remove(name, { ifMatch: etag }) });
    const { status } = await this.#request(`DELETE ${name} if it matches`, execute, undefined, "STORE_FAILED");
    if (status !== 204) throw this.#failure("STORE_FAILED", `to remove ${name}`, status);
  }

  close(): void {}

  get #isHostile(): boolean {
    return this.#network.hostile() === this.#index;
  }

  #look(name: string, bucket: Bucket): StoredObject | undefined {
    if (!this.#isHostile) return bucket.objects.get(name);
    const shown = liesOf(name, this.#network.known, bucket, this.#lie());
    if (shown && this.#network.known.forgeries.includes(shown))
      this.#network.note(this.#process, this.#index, "forges");
    return shown;
  }

  /** The numbers of one lie. */
  #lie(): (purpose: number) => number {
    this.#network.note(this.#process, this.#index, "may lie");
    const lie = this.#process.nextLie();
    return (purpose) => noise(this.#network.seed, this.#process.id, 3, lie, purpose);
  }

  /** Tries as the SDK does: again after a broken connection and after 5xx. */
  async #request(
    what: string,
    execute: (bucket: Bucket) => Answer,
    signal: AbortSignal | undefined,
    code: ErrorCode,
  ): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted();
      const answer = await this.#send(what, execute, signal);
      if (answer && answer.status < 500) return answer;
      if (attempt === this.#attempts) {
        if (answer) return answer;
        throw this.#failure(code, `for ${what}`, undefined);
      }
      await new Promise<void>((resolve) => void this.#process.clock.after(RETRY_MS * 2 ** attempt, resolve));
    }
  }

  /** Resolves with an answer, or with undefined when the connection breaks. Rejects when `signal` aborts. */
  #send(
    what: string,
    execute: (bucket: Bucket) => Answer,
    signal: AbortSignal | undefined,
  ): Promise<Answer | undefined> {
    const process = this.#process;
    const { seed, loop, buckets, faultOf, note } = this.#network;
    const request = process.nextRequest();
    const draw = (purpose: number): number => noise(seed, process.id, 2, request, purpose);
    // Beside a region that lies, no other may be so late that it is omitted.
    const tail = this.#network.isHealed() || this.#network.hostile() !== undefined ? 0 : 1;
    const thereMs = travelMs(draw(0) * tail, draw(1));
    const backMs = travelMs(draw(2) * tail, draw(3));
    const { promise, resolve, reject } = Promise.withResolvers<Answer | undefined>();
    let isGivenUp = false;
    const answer = (value: Answer | undefined, ms: number): void => {
      loop.after(ms, () => process.deliver(() => resolve(value)));
    };
    const run = (): Answer => this.#network.execute(process, this.#index, what, () => execute(buckets[this.#index]!));
    const arrive = (): void => {
      // A request in flight when its sender stopped may or may not arrive.
      if ((process.isDead || isGivenUp) && draw(4) < 0.5) return;
      const fault = faultOf(this.#index);
      if (!fault) return answer(run(), backMs);
      note(process, this.#index, `${what}: ${fault.kind}`);
      if (fault.kind === "refuse") return answer({ status: 503 }, backMs);
      if (fault.kind === "deaf") run();
      if (fault.kind !== "hang") return answer(undefined, backMs);
      if (draw(5) < 0.5) loop.after(fault.toMs - loop.nowMs + 1000 * draw(6), run);
      answer(undefined, IDLE_MS);
    };
    loop.after(thereMs, arrive);
    const onAbort = (): void => {
      isGivenUp = true;
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    return promise.finally(() => signal?.removeEventListener("abort", onAbort));
  }

  #failure(code: ErrorCode, what: string, status: number | undefined): AgaroseError {
    const { name } = this.region;
    return new AgaroseError(code, `region ${name} failed ${what} (${status ?? "connection broken"})`, {
      region: name,
      status,
    });
  }
}

/** Mostly 5 to 40 ms, sometimes up to half a second, seldom longer than others wait. */
function travelMs(which: number, how: number): number {
  if (which < 0.85) return 5 + 35 * how;
  return which < 0.98 ? 40 + 460 * how : 500 + 3500 * how;
}

function slice(bytes: Uint8Array, range: string): Uint8Array {
  const [, start, end] = /^bytes=(\d+)-(\d*)$/.exec(range)!;
  return bytes.subarray(Number(start), end ? Number(end) + 1 : undefined);
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

function streamOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes.slice());
      controller.close();
    },
  });
}
