/**
 * Reads one stripe by late binding (EC-Cache 4.2): start k + delta requests, use the first k verified chunks, abort the
 * rest; replace at once what fails, and ask one more source whenever the expected time has passed.
 */
import { AgaroseError, toAgaroseError, type ErrorCode } from "./errors.ts";
import { hedgeAfterMs } from "./latency.ts";
import { chunkHash, type Manifest, type StripeShape } from "./manifest.ts";
import type { Clock, Sha256 } from "./ports.ts";
import { startCount, type Candidate } from "./read-plan.ts";
import type { RequestRecord } from "./read-report.ts";

export interface StripeReadOptions {
  readonly manifest: Manifest;
  readonly stripe: StripeShape;
  /** From `planStripe`. */
  readonly candidates: readonly Candidate[];
  readonly delta: number;
  /** Whether to ask further sources once the expected time has passed. */
  readonly hedge: boolean;
  /** The stripe fails with READ_TIMEOUT after this long. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly signal: AbortSignal;
  /** Told of every request when it starts and again when it ends. Must not throw. */
  readonly onRequest: (record: RequestRecord) => void;
}

/** The first k verified shards by chunk index, exactly k of them. Rejects with NOT_ENOUGH_CHUNKS, READ_TIMEOUT or ABORTED. */
export function readStripe(options: StripeReadOptions): Promise<Map<number, Uint8Array>> {
  return new StripeRead(options).run();
}

interface Flight {
  readonly candidate: Candidate;
  readonly record: RequestRecord;
  readonly abort: AbortController;
}

class StripeRead {
  readonly #options: StripeReadOptions;
  readonly #waiting: Candidate[];
  /** Candidates that failed in a way that may pass. */
  readonly #secondTries: Candidate[] = [];
  readonly #triedAgain = new Set<Candidate>();
  readonly #flights = new Set<Flight>();
  readonly #shards = new Map<number, Uint8Array>();
  readonly #failures: { source: string; chunk: number; code: string }[] = [];
  readonly #result = Promise.withResolvers<Map<number, Uint8Array>>();
  #settled = false;
  #cancelHedge = (): void => {};

  constructor(options: StripeReadOptions) {
    this.#options = options;
    this.#waiting = [...options.candidates];
  }

  async run(): Promise<Map<number, Uint8Array>> {
    const { clock, signal, timeoutMs } = this.#options;
    const onAbort = (): void => this.#fail(toAgaroseError(signal.reason, "ABORTED"));
    signal.addEventListener("abort", onAbort);
    const cancelDeadline = clock.after(timeoutMs, () => this.#fail(this.#timeout()));
    try {
      if (signal.aborted) onAbort();
      else this.#start();
      return await this.#result.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
      cancelDeadline();
      this.#cancelHedge();
    }
  }

  #start(): void {
    const { delta, manifest } = this.#options;
    const count = startCount(manifest.k, delta, this.#waiting);
    const lateMs: number[] = [];
    for (let i = 0; i < count; i++) {
      const started = this.#launchNext();
      if (started) lateMs.push(hedgeAfterMs(started.estimate));
    }
    this.#failIfHopeless();
    // k of these suffice, so the read is late when the k-th of them is, however slow the extra ones are.
    this.#armHedge(lateMs.toSorted((a, b) => a - b)[manifest.k - 1] ?? 0);
  }

  /** Starts the best request still waiting: a chunk nobody is fetching first, else another source of one in flight. */
  #launchNext(): Candidate | undefined {
    if (this.#settled) return undefined;
    const inFlight = new Set([...this.#flights].map(({ candidate }) => candidate.chunk));
    const useful = this.#waiting.filter(({ chunk }) => !this.#shards.has(chunk));
    const next = useful.find(({ chunk }) => !inFlight.has(chunk)) ?? useful[0];
    if (!next) return undefined;
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    void this.#request(next);
    return next;
  }

  async #request(candidate: Candidate): Promise<void> {
    const { stripe, clock, onRequest } = this.#options;
    const { chunk, source } = candidate;
    const record: RequestRecord = {
      stripe: stripe.index,
      chunk,
      source: source.id,
      kind: source.kind,
      bytes: stripe.shardBytes,
      startMs: clock.now(),
      endMs: undefined,
      outcome: "pending",
      error: undefined,
    };
    const flight: Flight = { candidate, record, abort: new AbortController() };
    this.#flights.add(flight);
    onRequest(record);
    try {
      const shard = await source.fetch({ stripe, chunk, signal: flight.abort.signal });
      if (flight.abort.signal.aborted) return;
      await this.#verify(chunk, shard);
      this.#arrived(flight, shard);
    } catch (error) {
      this.#failed(flight, error);
    }
  }

  /** Throws CHUNK_WRONG_LENGTH or CHUNK_CORRUPT unless `shard` is what the manifest says. */
  async #verify(chunk: number, shard: Uint8Array): Promise<void> {
    const { manifest, stripe, sha256 } = this.#options;
    if (shard.length !== stripe.shardBytes) {
      throw new AgaroseError(
        "CHUNK_WRONG_LENGTH",
        `chunk ${chunk} of stripe ${stripe.index} has ${shard.length} bytes, ${stripe.shardBytes} are expected`,
        { expected: stripe.shardBytes, received: shard.length },
      );
    }
    const expected = chunkHash(manifest, stripe.index, chunk);
    const actual = await sha256(shard);
    if (expected.length === actual.length && expected.every((byte, i) => byte === actual[i])) return;
    throw new AgaroseError(
      "CHUNK_CORRUPT",
      `chunk ${chunk} of stripe ${stripe.index} has another SHA-256 than its own`,
      {
        chunk,
        stripe: stripe.index,
      },
    );
  }

  #arrived(flight: Flight, shard: Uint8Array): void {
    if (!this.#flights.delete(flight)) return;
    const { chunk } = flight.candidate;
    const used = !this.#shards.has(chunk);
    this.#end(flight, used ? "used" : "unused");
    this.#shards.set(chunk, shard);
    if (this.#shards.size < this.#options.manifest.k) return;
    this.#settle();
    this.#result.resolve(this.#shards);
  }

  #failed(flight: Flight, error: unknown): void {
    if (!this.#flights.delete(flight)) return;
    const { code } = toAgaroseError(error, "SOURCE_FAILED");
    const { chunk, source } = flight.candidate;
    this.#failures.push({ source: source.id, chunk, code });
    this.#end(flight, "failed", code);
    this.#keepForSecondTry(flight.candidate, code);
    this.#launchNext();
    this.#failIfHopeless();
  }

  /** A bucket's failure may be a passing one: a 503, a cut connection. */
  #keepForSecondTry(candidate: Candidate, code: ErrorCode): void {
    if (candidate.source.kind !== "region" || code === "CHUNK_MISSING" || this.#triedAgain.has(candidate)) return;
    this.#secondTries.push(candidate);
  }

  #failIfHopeless(): void {
    const { manifest, stripe } = this.#options;
    const chunks = new Set([...this.#shards.keys(), ...[...this.#flights].map(({ candidate }) => candidate.chunk)]);
    for (const { chunk } of this.#waiting) chunks.add(chunk);
    // Only a read that would fail otherwise asks a source that has failed once more, and only once.
    while (chunks.size < manifest.k && this.#secondTries.length > 0 && !this.#settled) {
      const again = this.#secondTries.shift()!;
      this.#triedAgain.add(again);
      chunks.add(again.chunk);
      void this.#request(again);
    }
    if (chunks.size >= manifest.k) return;
    const received = this.#shards.size;
    this.#fail(
      new AgaroseError(
        "NOT_ENOUGH_CHUNKS",
        `stripe ${stripe.index} of ${JSON.stringify(manifest.key)} needs ${manifest.k} chunks and can get ` +
          `${chunks.size} (${received} received; ${summary(this.#failures)}): retry once its regions answer again`,
        { stripe: stripe.index, needed: manifest.k, available: chunks.size, received, failures: this.#failures },
      ),
    );
  }

  #armHedge(ms: number): void {
    if (!this.#options.hedge) return;
    this.#cancelHedge = this.#options.clock.after(ms, () => {
      const next = this.#launchNext();
      if (next) this.#armHedge(hedgeAfterMs(next.estimate));
    });
  }

  #timeout(): AgaroseError {
    const { manifest, stripe, timeoutMs } = this.#options;
    const received = this.#shards.size;
    return new AgaroseError(
      "READ_TIMEOUT",
      `stripe ${stripe.index} of ${JSON.stringify(manifest.key)} got ${received} of ${manifest.k} chunks in ` +
        `${timeoutMs} ms (${summary(this.#failures)}): retry, or allow more time`,
      { stripe: stripe.index, needed: manifest.k, received, timeoutMs, failures: this.#failures },
    );
  }

  #fail(error: AgaroseError): void {
    if (this.#settled) return;
    this.#settle();
    this.#result.reject(error);
  }

  /** Aborts what is in flight in the same turn, so that nothing can arrive any more. */
  #settle(): void {
    this.#settled = true;
    for (const flight of this.#flights) {
      this.#flights.delete(flight);
      this.#end(flight, "cancelled");
      flight.abort.abort();
    }
  }

  #end(flight: Flight, outcome: RequestRecord["outcome"], error?: string): void {
    flight.record.outcome = outcome;
    flight.record.error = error;
    flight.record.endMs = this.#options.clock.now();
    this.#options.onRequest(flight.record);
  }
}

function summary(failures: readonly { source: string; chunk: number; code: string }[]): string {
  if (failures.length === 0) return "no source failed";
  const counts = new Map<string, number>();
  for (const { source, code } of failures) counts.set(`${source} ${code}`, (counts.get(`${source} ${code}`) ?? 0) + 1);
  return [...counts].map(([what, count]) => (count > 1 ? `${what} x${count}` : what)).join(", ");
}
