/**
 * The memory that all reads of one isolate may hold at once. A Worker has 128 MB, and an isolate beyond that ends with
 * all its reads. A read therefore takes a lease; without room it waits or does without.
 *
 * A lease does not last forever: its client may have left without a signal, its invocation may have been killed, or the
 * client may read too slowly. A lease whose client takes nothing for 30 s expires. Where others wait, it expires after
 * 10 s without a byte, or with less than 64 KiB a second.
 */
import { AgaroseError, type Clock } from "@agarose/core";
import { sleep } from "../../runtime/async.ts";

/**
 * The rest of the 128 MB is for code, the chunk cache's memory, the codec's, and garbage that is not collected yet.
 * These are sixteen stripes of 4 MiB, with the padding of their shards.
 */
export const READ_BYTES_MAX = 65 * 1024 * 1024;
/** As long as one stripe may take: a late first byte is better than an error, up to here. */
const WAIT_MS = 30_000;
const POLL_MS = 25;
/** A client that takes nothing for so long has stalled. */
export const STALLED_MS = 30_000;
/** The same while another read waits for memory. */
export const STALLED_MS_CONTENDED = 10_000;
/** A client that takes less in so much of its time than `PACE_BYTES_PER_MS` gives way to a read that waits. */
const PACE_MS = 10_000;
const PACE_BYTES_PER_MS = (64 * 1024) / 1_000;
/** A client that takes nothing for so long gets no stripes ahead. */
const SLOW_MS = 5_000;
/**
 * Concurrent reads of one object hold mostly the same stripes (`StripeCoalescing`): all but the first count this much.
 */
const SAME_OBJECT = 0.25;
/** The share of the memory that the reads of one client address may hold. */
const CLIENT_SHARE = 0.5;

interface LeaseRequest {
  /** Reads of one version share stripes; undefined for what shares nothing. */
  readonly version?: string | undefined;
  /** Bytes of one unit: a stripe with its overhead. */
  readonly bytes: number;
  /** The client's address; undefined where the platform does not report one: then no limit per client applies. */
  readonly client?: string | undefined;
}

/** The memory of one read. */
export interface MemoryLease {
  /** Returns how many units the read may hold now: at least one. It changes as other reads come and go. */
  units(): number;
  /** Notes that the client has taken so many bytes since the last note. */
  took(bytes: number): void;
  /** Notes that the time since the last note was not the client's: a source was slow. */
  progress(): void;
  /** Returns whether the lease has ended: the read must stop. A stalled lease expires here. */
  hasEnded(): boolean;
  /** Ends the lease; a second call does nothing. */
  release(): void;
}

interface Held {
  readonly version: string | undefined;
  readonly counted: number;
  readonly client: string | undefined;
  progressMs: number;
  /** How long the client took, of `PACE_MS`, for the bytes that it took in them. */
  clientMs: number;
  taken: number;
  /** Whether it was too slow in the last whole `PACE_MS`. */
  isSlow: boolean;
}

/** The leases of one isolate. */
export class MemoryBudget {
  readonly #clock: Clock;
  readonly #bytesMax: number;
  readonly #held = new Set<Held>();
  /** One unit of every read. */
  #bytes = 0;
  #expired = 0;

  constructor(clock: Clock, bytesMax = READ_BYTES_MAX) {
    this.#clock = clock;
    this.#bytesMax = bytesMax;
  }

  get reads(): number {
    return this.#held.size;
  }

  /** Leases that have expired because their client stalled or left. */
  get expired(): number {
    return this.#expired;
  }

  /** Returns a lease, or undefined while there is no room. A lone read always gets one. */
  tryAcquire(request: LeaseRequest): MemoryLease | undefined {
    this.#expire(STALLED_MS);
    if (!this.#fits(request)) this.#expire(STALLED_MS_CONTENDED, true);
    if (!this.#fits(request)) return undefined;
    const { version, client } = request;
    const held: Held = {
      version,
      client,
      counted: this.#counted(request),
      progressMs: this.#clock.now(),
      clientMs: 0,
      taken: 0,
      isSlow: false,
    };
    this.#held.add(held);
    this.#bytes += held.counted;
    return {
      units: () => (this.#idleMs(held) >= SLOW_MS ? 1 : Math.max(1, Math.floor(this.#bytesMax / this.#bytes))),
      took: (bytes) => this.#took(held, bytes),
      progress: () => void (held.progressMs = this.#clock.now()),
      hasEnded: () => {
        this.#expire(STALLED_MS);
        return !this.#held.has(held);
      },
      release: () => this.#end(held),
    };
  }

  /** Resolves to a lease once there is room. Rejects with BUSY after 30 s, or with the signal's reason. */
  async acquire(request: LeaseRequest, signal: AbortSignal): Promise<MemoryLease> {
    const startMs = this.#clock.now();
    for (;;) {
      signal.throwIfAborted();
      const lease = this.tryAcquire(request);
      if (lease) return lease;
      if (this.#clock.now() - startMs >= WAIT_MS) {
        throw new AgaroseError(
          "BUSY",
          `${this.reads} reads hold the ${this.#bytesMax} bytes that this PoP has for reads: retry, or ask another PoP`,
          { reads: this.reads, bytesMax: this.#bytesMax },
        );
      }
      // A promise of one invocation must not be settled by another, so a waiting read polls.
      await sleep(POLL_MS, this.#clock);
    }
  }

  #fits(request: LeaseRequest): boolean {
    if (this.reads === 0) return true;
    const counted = this.#counted(request);
    if (this.#bytes + counted > this.#bytesMax) return false;
    const ofClient = request.client === undefined ? 0 : this.#bytesOf(request.client);
    return ofClient === 0 || ofClient + counted <= CLIENT_SHARE * this.#bytesMax;
  }

  #counted({ version, bytes }: LeaseRequest): number {
    const isShared = version !== undefined && [...this.#held].some((held) => held.version === version);
    return isShared ? SAME_OBJECT * bytes : bytes;
  }

  #bytesOf(client: string): number {
    return [...this.#held].reduce((sum, held) => sum + (held.client === client ? held.counted : 0), 0);
  }

  #idleMs({ progressMs }: Held): number {
    return this.#clock.now() - progressMs;
  }

  #took(held: Held, bytes: number): void {
    held.clientMs += this.#idleMs(held);
    held.taken += bytes;
    held.progressMs = this.#clock.now();
    if (held.clientMs < PACE_MS) return;
    held.isSlow = held.taken < held.clientMs * PACE_BYTES_PER_MS;
    held.clientMs = 0;
    held.taken = 0;
  }

  #expire(stalledMs: number, endsSlow = false): void {
    for (const held of this.#held) {
      if (this.#idleMs(held) < stalledMs && !(endsSlow && held.isSlow)) continue;
      this.#expired++;
      this.#end(held);
    }
  }

  #end(held: Held): void {
    if (!this.#held.delete(held)) return;
    this.#bytes -= held.counted;
  }
}
