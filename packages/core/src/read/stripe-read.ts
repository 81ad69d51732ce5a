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

/**
 * Reads k verified shards, by chunk index: the first k that arrive, or the k data shards if functional chunks are
 * among them; or the wanted one alone. Rejects with NOT_ENOUGH_CHUNKS, READ_TIMEOUT, ABORTED, or the codec's own error.
 */
export async function readStripe(options: StripeReadOptions): Promise<Map<number, Uint8Array>> {
  const { manifest, stripe, wanted, here = new Map<number, Uint8Array>(), hashes, checkPart, fallback } = options;
  const { until, patienceMs, line, candidates, further = [], delta, hedge, timeoutMs } = options;
  const { clock, sha256, signal, onRequest } = options;
  /** How many chunks it takes, beside those that are here. */
  const k = checkPart ? 1 : manifest.k - here.size;
  const waiting = candidates.filter(({ chunk }) => !here.has(chunk));
  /** Candidates whose failure may be transient. */
  const secondTries: Candidate[] = [];
  const flights = new Set<Flight>();
  /** By chunk. All are verified except functional ones, whose outcome is pending until they are proven. */
  const arrivals = new Map<number, Required<Flight>>();
  let isProving = false;
  /** How many arrivals end the read: k, or k + 1 after the first k turned out to contain a corrupt one. */
  let needed = k;
  const failures: FailedRequest[] = [];
  const result = Promise.withResolvers<Map<number, Uint8Array>>();
  let isSettled = false;
  /** Whether only the wanted chunk is asked for. */
  let isNarrow = wanted !== undefined && asksAlone(manifest.k, wanted, candidates);
  let isUpdated = false;
  let cancelHedge: (() => void) | undefined;
  let cancelDeadline: (() => void) | undefined;

  // Without hashes no chunk can be used, whichever source has it.
  hashes.catch((error: unknown) => fail(toAgaroseError(error)));
  const detach = whenAborted(signal, () => fail(toAgaroseError(signal.reason, "ABORTED")));
  armDeadline();
  try {
    if (!isSettled) start();
    return await result.promise;
  } finally {
    detach();
    cancelDeadline?.();
    cancelHedge?.();
  }

  function start(): void {
    if (isNarrow) launch(1, 1);
    else if (wanted !== undefined && fallback === "none") return failFor({ available: 0 });
    else launch(startCount(k, delta, waiting));
    failIfHopeless();
    for (const update of further) {
      void update.then((more) => more && takeIn(more));
    }
  }

  /**
   * Starts `count` requests. `enough` of them suffice, so the read is late when that many-th is, no matter how slow the
   * extra ones are.
   */
  function launch(count: number, enough = k): void {
    const lateMs = Array.from({ length: count }, () => launchNext());
    cancelHedge?.();
    // Requests that were not started are undefined, and sorted last.
    armHedge((lateMs.toSorted((a, b) => a! - b!)[enough - 1] ?? 0) + (patienceMs ?? 0));
  }

  /** Requests an update that arrives sooner than what is under way, and queues the others. */
  function takeIn(more: readonly Candidate[]): void {
    isUpdated = true;
    for (const candidate of more) {
      const { chunk, source, estimate } = candidate;
      const isKnown = candidates.some((known) => known.chunk === chunk && known.source === source);
      if (isKnown || isSettled || arrivals.has(chunk)) continue;
      const atMs = clock.now() + estimate.meanMs;
      const isSooner = [...flights].some((flight) => atMs < flight.record.startMs + flight.candidate.estimate.meanMs);
      // The edge's chunks are on their way without a request. A peer's take a further one.
      if (source.kind === "edge" || (isSooner && mayHedge(1))) void ask(candidate, true);
      else waiting.push(candidate);
    }
  }

  /**
   * Starts the best waiting request: last those to sources that are late, and before another source of a chunk that is
   * in flight, one for a chunk that is not. Of a narrow read, another source of the wanted chunk; without one, k other
   * chunks. Returns the milliseconds after which it is late, or undefined if none is waiting.
   */
  function launchNext(): number | undefined {
    if (isSettled) return undefined;
    const inFlight = new Set([...flights].map(({ candidate }) => candidate.chunk));
    const isLate = ({ candidate, record }: Flight): boolean =>
      clock.now() - record.startMs >= hedgeAfterMs(candidate.estimate) + (patienceMs ?? 0);
    const late = new Set([...flights].filter(isLate).map(({ record }) => record.source));
    const rank = ({ chunk, source }: Candidate): number =>
      2 * Number(late.has(source.id)) + Number(inFlight.has(chunk));
    const [next] = waiting
      .filter(({ chunk }) => !arrivals.has(chunk) && (!isNarrow || chunk === wanted))
      .toSorted((a, b) => rank(a) - rank(b));
    if (isNarrow && !next) widen();
    if (!next) return undefined;
    waiting.splice(waiting.indexOf(next), 1);
    void ask(next);
    return hedgeAfterMs(next.estimate);
  }

  /** Asks for k other chunks, last those of sources that failed this read. */
  function widen(): void {
    isNarrow = false;
    const isHopeless = failures.length > 0 || isUpdated;
    if (patienceMs !== undefined || (isHopeless && fallback === "none")) return failFor({ available: 0 });
    const suspects = new Set(failures.map(({ source }) => source));
    waiting.sort((a, b) => Number(suspects.has(a.source.id)) - Number(suspects.has(b.source.id)));
    launch(k);
  }

  async function ask(candidate: Candidate, isExtra = false): Promise<void> {
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
    flights.add(flight);
    onRequest(record);
    try {
      const request = { stripe, chunk, until, signal: flight.abort.signal, onStart, onFollow, onPart };
      const shard = await source.fetch(request).finally(() => flight.onLine?.end());
      if (flight.abort.signal.aborted) return;
      const what = HAS_MESSAGES && `${source.kind} ${source.id}, chunk ${chunk} of stripe ${stripe.index}`;
      checkedLength(shard, stripe.shardBytes, what);
      flight.shard = shard;
      if (checkPart) await checkPart(shard);
      else if (!isProvenLater(chunk)) await checkHash(options, chunk, shard, sha256);
      arrived(flight);
    } catch (error) {
      onFailure(flight, error);
    }
  }

  function arrived(flight: Flight): void {
    if (!flights.delete(flight)) return;
    const { chunk } = flight.candidate;
    if (arrivals.has(chunk)) return end(flight, "unused");
    arrivals.set(chunk, flight as Required<Flight>);
    if (!isProvenLater(chunk)) end(flight, "used");
    void completeIfEnough();
  }

  /** Ends the read when k shards have arrived and the functional ones among them are proven. */
  async function completeIfEnough(): Promise<void> {
    const own = wanted !== undefined && arrivals.get(wanted);
    if (own) return succeed(new Map([[wanted, own.shard]]));
    if (arrivals.size < needed || isProving) return;
    const first = [...arrivals.values()].slice(0, needed);
    const came = first.map(({ candidate, shard }) => [candidate.chunk, shard] as const);
    const shards = new Map([...here, ...came]);
    const unproven = first.filter(isPending);
    const inDoubt = needed > k;
    if (unproven.length === 0 && !inDoubt) return succeed(shards);
    isProving = true;
    const leftOut = inDoubt ? unproven.map(({ candidate }) => candidate.chunk) : [undefined];
    try {
      const proof = await proveShards(shards, leftOut, { ...options, isOver: () => isSettled });
      if (isSettled) return;
      if (proof) {
        for (const flight of unproven) {
          if (flight.candidate.chunk === proof.corrupt) end(flight, "failed", "CHUNK_CORRUPT");
          else end(flight, "used");
        }
        return succeed(new Map(proof.data.entries()));
      }
    } catch (error) {
      return fail(toAgaroseError(error));
    }
    isProving = false;
    if (inDoubt || unproven.length === 1) drop(unproven);
    else {
      needed++;
      if (launchNext()) unproven[0]!.isExtra = true;
      failIfHopeless();
    }
    void completeIfEnough();
  }

  /** Drops chunks of which at least one is corrupt. */
  function drop(suspects: readonly Flight[]): void {
    needed = k;
    for (const { candidate } of suspects) arrivals.delete(candidate.chunk);
    replace(suspects, "CHUNK_CORRUPT");
  }

  function onFailure(flight: Flight, error: unknown): void {
    if (flights.delete(flight)) replace([flight], toAgaroseError(error, "SOURCE_FAILED").code);
  }

  /** Records that `failed` failed, and starts as many other requests. */
  function replace(failed: readonly Flight[], code: ErrorCode): void {
    for (const flight of failed) {
      const { candidate, isExtra } = flight;
      const { chunk, source } = candidate;
      failures.push({ source: source.id, chunk, code });
      end(flight, "failed", code);
      // A bucket's failure may be transient: a 503, a cut connection.
      if (source.kind === "region" && code !== "CHUNK_MISSING" && !isExtra) secondTries.push(candidate);
    }
    for (const { isExtra } of failed) if (!isExtra) launchNext();
    failIfHopeless();
  }

  /** Fails the read if the chunks here, under way and waiting are too few. */
  function failIfHopeless(): void {
    if (isSettled) return;
    const chunks = new Set(arrivals.keys());
    for (const { candidate } of flights) chunks.add(candidate.chunk);
    for (const { chunk } of waiting) chunks.add(chunk);
    // Only a read that would otherwise fail asks a failed source again, and only once.
    while (chunks.size < needed && secondTries.length > 0) {
      const again = secondTries.shift()!;
      chunks.add(again.chunk);
      void ask(again, true);
    }
    const mayCome = [...flights].some(({ candidate }) => candidate.chunk === wanted);
    if (chunks.size >= needed || mayCome) return;
    if (needed > k) return drop([...arrivals.values()].filter(isPending));
    failFor({ available: chunks.size });
  }

  /** Asks one more source after `ms`, and so on. */
  function armHedge(ms: number, times: number = 1): void {
    if (!hedge) return;
    cancelHedge = clock.after(ms, () => {
      // Chunks that have arrived may wait for the leaf list, which is read separately.
      const isHere = isNarrow && [...flights].some(({ shard }) => shard);
      if (isHere || isBehindOthers()) return armHedge(AGAIN_MS, times + 1);
      if (!mayHedge(times)) return armHedge(ms, times + 1);
      const lateMs = launchNext();
      if (lateMs) armHedge(lateMs);
    });
  }

  /** Whether the line is what a piece waits for, or a stripe whose missing chunks all come from the edge. */
  function isBehindOthers(): boolean {
    const isPiece = wanted !== undefined;
    // Of a read in order, most of what k others bring is wanted next.
    const bytes = (isPiece && patienceMs === undefined ? k : 1) * stripe.shardBytes;
    const others = waiting.map(({ estimate }) => estimate.meanMs).toSorted((a, b) => a - b);
    const othersMs = others[k - 1] ?? 0;
    const waits = [...flights].map(
      ({ record, onLine }) => (isPiece || record.kind === "edge") && onLine?.isOverdue(bytes, othersMs) === false,
    );
    return waits.includes(true) && (isPiece || !waits.includes(false));
  }

  function mayHedge(times: number): boolean {
    return hedge === true || (hedge && hedge((isNarrow ? k : 1) * stripe.shardBytes, times));
  }

  /** A slow line may take minutes for what is read ahead. Only silence ends the read. */
  function armDeadline(): void {
    const progress = (): number => candidates.reduce((sum, { source }) => sum + (source.progress ?? 0), 0);
    const before = progress();
    cancelDeadline = clock.after(timeoutMs, () => {
      if (progress() === before) failFor({ timeoutMs });
      else armDeadline();
    });
  }

  function succeed(shards: Map<number, Uint8Array>): void {
    settle();
    result.resolve(shards);
  }

  function failFor(reason: Parameters<typeof stripeError>[4]): void {
    fail(stripeError({ key: manifest.key, k }, stripe.index, arrivals.size, failures, reason));
  }

  function fail(error: AgaroseError): void {
    if (isSettled) return;
    settle();
    result.reject(error);
  }

  /** Aborts what is in flight in the same microtask, so that nothing arrives after the end. */
  function settle(): void {
    isSettled = true;
    for (const flight of flights) {
      flights.delete(flight);
      end(flight, "cancelled");
      flight.abort.abort(UNWANTED);
    }
    for (const flight of [...arrivals.values()].filter(isPending)) end(flight, "unused");
  }

  function isProvenLater(chunk: number): boolean {
    return !checkPart && isFunctional(manifest, chunk);
  }

  function end(flight: Flight, outcome: RequestRecord["outcome"], error?: string): void {
    flight.record.outcome = outcome;
    flight.record.error = error;
    flight.record.endMs ??= clock.now();
    onRequest(flight.record);
  }
}

function isPending({ record }: Flight): boolean {
  return record.outcome === "pending";
}
