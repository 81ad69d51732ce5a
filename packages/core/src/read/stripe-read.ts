/**
 * Reads one stripe by late binding (EC-Cache, section 4.2). It starts k + delta requests, uses the first k verified
 * chunks and aborts the rest. It replaces a failed request at once, and asks one more source when the expected time
 * has passed.
 *
 * Functional chunks count towards k as they arrive and are proven together (`functional-proof.ts`). If the proof
 * fails, one more chunk shows which of them is corrupt. If it still fails, several are, and all of them are dropped.
 */
import { whenAborted } from "../async/when-aborted.ts";
import { checkedLength } from "../sources/body.ts";
import { UNWANTED } from "../sources/source.ts";
import type { Decoder } from "../codec.ts";
import { HAS_MESSAGES, toAgaroseError, type AgaroseError, type ErrorCode } from "../errors.ts";
import { hedgeAfterMs } from "../latency.ts";
import { isFunctional, type Manifest, type StripePart, type StripeShape } from "../format/manifest/index.ts";
import type { Clock, Sha256 } from "../ports.ts";
import { asksAlone, startCount, type Candidate } from "./read-plan.ts";
import type { Line, LineRequest } from "./line.ts";
import type { RequestRecord } from "./read-report.ts";
import { proveShards } from "./functional-proof.ts";
import { stripeError, type FailedRequest } from "./stripe-errors.ts";
import { checkHash } from "./stripe-shards.ts";

/**
 * Whether a late stripe may ask one more source for a shard of `bytes` bytes. `times` counts from 1 how often the
 * stripe has been late since its last request. When the answer is no, the stripe asks again after the same time.
 */
export type Hedge = boolean | ((bytes: number, times: number) => boolean);

/** Which stripe to read, and how. */
export interface StripeReadOptions {
  readonly manifest: Manifest;
  readonly stripe: StripeShape | StripePart;
  /**
   * The one chunk that the read wants. It is asked for alone, and k others only when it fails or is late. Default: any
   * k chunks.
   */
  readonly wanted?: number | undefined;
  /** Verified shards that need no request, by chunk; fewer than k. Default: none. */
  readonly here?: ReadonlyMap<number, Uint8Array>;
  /** The hashes of its n shards. Where they cannot be read, the stripe fails as they do. */
  readonly hashes: Promise<Uint8Array>;
  /** To read a part of the leaf list, one copy of it, instead of chunks: rejects unless that is sound. */
  readonly checkPart?: (part: Uint8Array) => Promise<void>;
  /** See `ReadPolicy`. */
  readonly fallback?: "stripe" | "none";
  /** See `ChunkRequest`. */
  readonly until?: number | undefined;
  /** How much later than usual a request is late, because so much is ahead of it on the line. Default 0 ms. */
  readonly patienceMs?: number;
  /** The line that its bytes share. Default: it is not measured. */
  readonly line?: Line;
  /** All possible requests, best first: the result of `planStripe`. */
  readonly candidates: readonly Candidate[];
  /**
   * Candidates that sources offer later (`ChunkSource.updated`), undefined from one that failed. Known ones among them
   * are ignored. Default: none.
   */
  readonly further?: readonly Promise<readonly Candidate[] | undefined>[];
  /** Requests beyond k to start with. */
  readonly delta: number;
  /** Whether to ask one more source when the expected time has passed. */
  readonly hedge: Hedge;
  /** The stripe fails with READ_TIMEOUT when none of its sources sends anything for this time. */
  readonly timeoutMs: number;
  /** Loads the codec, which only functional chunks need here. */
  readonly codec: () => Promise<Decoder>;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly signal: AbortSignal;
  /** Called when a request starts and again when it ends. Must not throw. */
  readonly onRequest: (record: RequestRecord) => void;
}

/**
 * Reads k verified shards, by chunk index: the first k that arrive, or the k data shards if functional chunks are
 * among them; or the wanted one alone. Rejects with NOT_ENOUGH_CHUNKS, READ_TIMEOUT, ABORTED, or the codec's own error.
 */
export function readStripe(options: StripeReadOptions): Promise<Map<number, Uint8Array>> {
  return new StripeRead(options).run();
}

/** How often to look again whether what a read waits for is still the line, or the leaf list. */
const AGAIN_MS = 20;

/** A request under way, or its shard that has arrived. */
interface Flight {
  readonly candidate: Candidate;
  readonly record: RequestRecord;
  readonly abort: AbortController;
  /** An update, a second try or a check for corruption: its failure starts no other request. */
  isExtra: boolean;
  /** Itself on the line. */
  onLine?: LineRequest | undefined;
  /** Set when it has arrived. */
  shard?: Uint8Array;
}

class StripeRead {
  readonly #options: StripeReadOptions;
  /** How many chunks it takes, beside those that are here. */
  readonly #k: number;
  readonly #waiting: Candidate[];
  /** Candidates whose failure may be transient. */
  readonly #secondTries: Candidate[] = [];
  readonly #flights = new Set<Flight>();
  /** By chunk. All are verified except functional ones, whose outcome is pending until they are proven. */
  readonly #arrivals = new Map<number, Required<Flight>>();
  #proving = false;
  /** How many arrivals end the read: k, or k + 1 after the first k turned out to contain a corrupt one. */
  #needed: number;
  readonly #failures: FailedRequest[] = [];
  readonly #result = Promise.withResolvers<Map<number, Uint8Array>>();
  #settled = false;
  /** Whether only the wanted chunk is asked for. */
  #isNarrow: boolean;
  #isUpdated = false;
  #cancelHedge = (): void => {};
  #cancelDeadline = (): void => {};

  constructor(options: StripeReadOptions) {
    const { candidates, wanted, manifest, checkPart, here } = options;
    this.#options = options;
    this.#k = checkPart ? 1 : manifest.k - (here?.size ?? 0);
    this.#needed = this.#k;
    this.#waiting = candidates.filter(({ chunk }) => !here?.has(chunk));
    this.#isNarrow = wanted !== undefined && asksAlone(manifest.k, wanted, candidates);
  }

  async run(): Promise<Map<number, Uint8Array>> {
    const { signal, hashes } = this.#options;
    // Without hashes no chunk can be used, whichever source has it.
    hashes.catch((error: unknown) => this.#fail(toAgaroseError(error)));
    const detach = whenAborted(signal, () => this.#fail(toAgaroseError(signal.reason, "ABORTED")));
    this.#armDeadline();
    try {
      if (!this.#settled) this.#start();
      return await this.#result.promise;
    } finally {
      detach();
      this.#cancelDeadline();
      this.#cancelHedge();
    }
  }

  #start(): void {
    const { delta, wanted, fallback } = this.#options;
    if (this.#isNarrow) this.#launch(1, 1);
    else if (wanted !== undefined && fallback === "none") return this.#failFor({ available: 0 });
    else this.#launch(startCount(this.#k, delta, this.#waiting));
    this.#failIfHopeless();
    for (const further of this.#options.further ?? []) {
      void further.then((candidates) => candidates && this.#takeIn(candidates));
    }
  }

  /**
   * Starts `count` requests. `needed` of them suffice, so the read is late when that many-th is, no matter how slow the
   * extra ones are.
   */
  #launch(count: number, needed = this.#k): void {
    const { patienceMs = 0 } = this.#options;
    const lateMs = Array.from({ length: count }, () => this.#launchNext());
    this.#cancelHedge();
    // Requests that were not started are undefined, and sorted last.
    this.#armHedge((lateMs.toSorted((a, b) => a! - b!)[needed - 1] ?? 0) + patienceMs);
  }

  /** Requests an update that arrives sooner than what is under way, and queues the others. */
  #takeIn(further: readonly Candidate[]): void {
    this.#isUpdated = true;
    const { candidates, clock } = this.#options;
    for (const candidate of further) {
      const { chunk, source, estimate } = candidate;
      const isKnown = candidates.some((known) => known.chunk === chunk && known.source === source);
      if (isKnown || this.#settled || this.#arrivals.has(chunk)) continue;
      const atMs = clock.now() + estimate.meanMs;
      const isSooner = [...this.#flights].some(
        (flight) => atMs < flight.record.startMs + flight.candidate.estimate.meanMs,
      );
      // The edge's chunks are on their way without a request. A peer's take a further one.
      if (source.kind === "edge" || (isSooner && this.#mayHedge(1))) void this.#request(candidate, true);
      else this.#waiting.push(candidate);
    }
  }

  /**
   * Starts the best waiting request: for a chunk that is not in flight if there is one, else another source of one
   * that is. Of a narrow read, another source of the wanted chunk; without one, k other chunks. Returns the
   * milliseconds after which it is late, or undefined if none is waiting.
   */
  #launchNext(): number | undefined {
    if (this.#settled) return undefined;
    const inFlight = new Set([...this.#flights].map(({ candidate }) => candidate.chunk));
    const useful = this.#waiting.filter(({ chunk }) => !this.#arrivals.has(chunk));
    const next = this.#isNarrow
      ? useful.find(({ chunk }) => chunk === this.#options.wanted)
      : (useful.find(({ chunk }) => !inFlight.has(chunk)) ?? useful[0]);
    if (this.#isNarrow && !next) this.#widen();
    if (!next) return undefined;
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    void this.#request(next);
    return hedgeAfterMs(next.estimate);
  }

  /** Asks for k other chunks, last those of sources that failed this read or are late. */
  #widen(): void {
    this.#isNarrow = false;
    const { fallback, patienceMs } = this.#options;
    const isHopeless = this.#failures.length > 0 || this.#isUpdated;
    if (patienceMs !== undefined || (isHopeless && fallback === "none")) return this.#failFor({ available: 0 });
    const late = [...this.#flights].map(({ record }) => record);
    const suspects = new Set([...this.#failures, ...late].map(({ source }) => source));
    this.#waiting.sort((a, b) => Number(suspects.has(a.source.id)) - Number(suspects.has(b.source.id)));
    this.#launch(this.#k);
  }

  async #request(candidate: Candidate, isExtra = false): Promise<void> {
    const { stripe, checkPart, until, patienceMs, line, clock, sha256, onRequest } = this.#options;
    const { chunk, source } = candidate;
    const record: RequestRecord = {
      stripe: stripe.index,
      chunk,
      source: source.id,
      kind: source.kind,
      bytes: stripe.shardBytes,
      startMs: clock.now(),
      outcome: "pending",
    };
    let waitMs: number | undefined = 0;
    const onStart = (): void => void (waitMs = record.waitMs = clock.now() - record.startMs);
    const onFollow = (): void => {
      waitMs = undefined;
      if (patienceMs !== undefined) record.follows = true;
    };
    const onPart = (bytes: number): void => flight.onLine?.received(bytes, waitMs);
    const flight: Flight = { candidate, record, abort: new AbortController(), isExtra };
    // The chunks of a bundle come one after the other, beside those of other bundles.
    flight.onLine = line?.begin(source.kind === "region" ? source.id : source, stripe.shardBytes);
    this.#flights.add(flight);
    onRequest(record);
    try {
      const { signal } = flight.abort;
      const request = { stripe, chunk, until, signal, onStart, onFollow, onPart };
      const shard = await source.fetch(request).finally(() => flight.onLine?.end());
      if (flight.abort.signal.aborted) return;
      const what = HAS_MESSAGES && `${source.kind} ${source.id}, chunk ${chunk} of stripe ${stripe.index}`;
      checkedLength(shard, stripe.shardBytes, what);
      flight.shard = shard;
      if (checkPart) await checkPart(shard);
      else if (!this.#isFunctional(chunk)) await checkHash(this.#options, chunk, shard, sha256);
      this.#arrived(flight);
    } catch (error) {
      this.#failed(flight, error);
    }
  }

  #arrived(flight: Flight): void {
    if (!this.#flights.delete(flight)) return;
    const { chunk } = flight.candidate;
    if (this.#arrivals.has(chunk)) return this.#end(flight, "unused");
    this.#arrivals.set(chunk, flight as Required<Flight>);
    if (!this.#isFunctional(chunk)) this.#end(flight, "used");
    void this.#completeIfEnough();
  }

  /** Ends the read when k shards have arrived and the functional ones among them are proven. */
  async #completeIfEnough(): Promise<void> {
    const { wanted = -1, here = [] } = this.#options;
    const own = this.#arrivals.get(wanted);
    if (own) return this.#succeed(new Map([[wanted, own.shard]]));
    if (this.#arrivals.size < this.#needed || this.#proving) return;
    const first = [...this.#arrivals.values()].slice(0, this.#needed);
    const came = first.map(({ candidate, shard }) => [candidate.chunk, shard] as const);
    const shards = new Map([...here, ...came]);
    const unproven = first.filter(isPending);
    const inDoubt = this.#needed > this.#k;
    if (unproven.length === 0 && !inDoubt) return this.#succeed(shards);
    this.#proving = true;
    const leftOut = inDoubt ? unproven.map(({ candidate }) => candidate.chunk) : [undefined];
    try {
      const proof = await proveShards(shards, leftOut, { ...this.#options, isOver: () => this.#settled });
      if (this.#settled) return;
      if (proof) {
        for (const flight of unproven) {
          if (flight.candidate.chunk === proof.corrupt) this.#end(flight, "failed", "CHUNK_CORRUPT");
          else this.#end(flight, "used");
        }
        return this.#succeed(new Map(proof.data.entries()));
      }
    } catch (error) {
      return this.#fail(toAgaroseError(error));
    }
    this.#proving = false;
    if (inDoubt || unproven.length === 1) this.#drop(unproven);
    else {
      this.#needed++;
      if (this.#launchNext()) unproven[0]!.isExtra = true;
      this.#failIfHopeless();
    }
    void this.#completeIfEnough();
  }

  /** Drops chunks of which at least one is corrupt. */
  #drop(suspects: readonly Flight[]): void {
    this.#needed = this.#k;
    for (const { candidate } of suspects) this.#arrivals.delete(candidate.chunk);
    this.#replace(suspects, "CHUNK_CORRUPT");
  }

  #failed(flight: Flight, error: unknown): void {
    if (this.#flights.delete(flight)) this.#replace([flight], toAgaroseError(error, "SOURCE_FAILED").code);
  }

  /** Records that `failed` failed, and starts as many other requests. */
  #replace(failed: readonly Flight[], code: ErrorCode): void {
    for (const flight of failed) {
      const { candidate, isExtra } = flight;
      const { chunk, source } = candidate;
      this.#failures.push({ source: source.id, chunk, code });
      this.#end(flight, "failed", code);
      // A bucket's failure may be transient: a 503, a cut connection.
      if (source.kind === "region" && code !== "CHUNK_MISSING" && !isExtra) this.#secondTries.push(candidate);
    }
    for (const { isExtra } of failed) if (!isExtra) this.#launchNext();
    this.#failIfHopeless();
  }

  /** Fails the read if the chunks here, under way and waiting are too few. */
  #failIfHopeless(): void {
    const chunks = new Set(this.#arrivals.keys());
    for (const { candidate } of this.#flights) chunks.add(candidate.chunk);
    for (const { chunk } of this.#waiting) chunks.add(chunk);
    // Only a read that would otherwise fail asks a failed source again, and only once.
    while (chunks.size < this.#needed && this.#secondTries.length > 0 && !this.#settled) {
      const again = this.#secondTries.shift()!;
      chunks.add(again.chunk);
      void this.#request(again, true);
    }
    const mayCome = [...this.#flights].some(({ candidate }) => candidate.chunk === this.#options.wanted);
    if (chunks.size >= this.#needed || mayCome) return;
    if (this.#needed > this.#k) return this.#drop([...this.#arrivals.values()].filter(isPending));
    this.#failFor({ available: chunks.size });
  }

  /** Asks one more source after `ms`, and so on. */
  #armHedge(ms: number, times: number = 1): void {
    const { hedge, clock } = this.#options;
    if (!hedge) return;
    this.#cancelHedge = clock.after(ms, () => {
      // Chunks that have arrived may wait for the leaf list, which is read separately.
      const isHere = this.#isNarrow && [...this.#flights].some(({ shard }) => shard);
      if (isHere || this.#isBehindOthers()) return this.#armHedge(AGAIN_MS, times + 1);
      if (!this.#mayHedge(times)) return this.#armHedge(ms, times + 1);
      const lateMs = this.#launchNext();
      if (lateMs) this.#armHedge(lateMs);
    });
  }

  /** Whether the line is what a piece waits for, or a stripe whose missing chunks all come from the edge. */
  #isBehindOthers(): boolean {
    const { wanted, stripe, patienceMs } = this.#options;
    const isPiece = wanted !== undefined;
    // Of a read in order, most of what k others bring is wanted next.
    const bytes = (isPiece && patienceMs === undefined ? this.#k : 1) * stripe.shardBytes;
    const others = this.#waiting.map(({ estimate }) => estimate.meanMs).toSorted((a, b) => a - b);
    const othersMs = others[this.#k - 1] ?? 0;
    const waits = [...this.#flights].map(
      ({ record, onLine }) => (isPiece || record.kind === "edge") && onLine?.isOverdue(bytes, othersMs) === false,
    );
    return waits.includes(true) && (isPiece || !waits.includes(false));
  }

  #mayHedge(times: number): boolean {
    const { hedge, stripe } = this.#options;
    return hedge === true || (hedge && hedge((this.#isNarrow ? this.#k : 1) * stripe.shardBytes, times));
  }

  /** A slow line may take minutes for what is read ahead. Only silence ends the read. */
  #armDeadline(): void {
    const { candidates, clock, timeoutMs } = this.#options;
    const progress = (): number => candidates.reduce((sum, { source }) => sum + (source.progress ?? 0), 0);
    const before = progress();
    this.#cancelDeadline = clock.after(timeoutMs, () => {
      if (progress() === before) this.#failFor({ timeoutMs });
      else this.#armDeadline();
    });
  }

  #succeed(shards: Map<number, Uint8Array>): void {
    this.#settle();
    this.#result.resolve(shards);
  }

  #failFor(reason: Parameters<typeof stripeError>[4]): void {
    const { manifest, stripe } = this.#options;
    this.#fail(
      stripeError({ key: manifest.key, k: this.#k }, stripe.index, this.#arrivals.size, this.#failures, reason),
    );
  }

  #fail(error: AgaroseError): void {
    if (this.#settled) return;
    this.#settle();
    this.#result.reject(error);
  }

  /** Aborts what is in flight in the same microtask, so that nothing arrives after the end. */
  #settle(): void {
    this.#settled = true;
    for (const flight of this.#flights) {
      this.#flights.delete(flight);
      this.#end(flight, "cancelled");
      flight.abort.abort(UNWANTED);
    }
    for (const flight of [...this.#arrivals.values()].filter(isPending)) this.#end(flight, "unused");
  }

  #isFunctional(chunk: number): boolean {
    return !this.#options.checkPart && isFunctional(this.#options.manifest, chunk);
  }

  #end(flight: Flight, outcome: RequestRecord["outcome"], error?: string): void {
    flight.record.outcome = outcome;
    flight.record.error = error;
    flight.record.endMs ??= this.#options.clock.now();
    this.#options.onRequest(flight.record);
  }
}

function isPending({ record }: Flight): boolean {
  return record.outcome === "pending";
}
