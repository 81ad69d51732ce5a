import { expect } from "vitest";
import { stripeShape } from "../src/format/manifest/index.ts";
import { fromBase64 } from "../src/format/text.ts";
import { planStripe } from "../src/read/read-plan.ts";
import type { RequestRecord } from "../src/read/read-report.ts";
import type { ChunkSource } from "../src/sources/source.ts";
import { readStripe, type StripeReadOptions } from "../src/read/stripe-read.ts";
import { CountingSignal } from "./counting-signal.ts";
import { FakeSource, type Behaviour } from "./fake-source.ts";
import { referenceCodec } from "./objects/reference-codec.ts";
import { sampleObject, toyHash } from "./objects/sample-object.ts";
import { SimulatedClock } from "./simulated-clock.ts";

/** One stripe of 4 + 2 chunks, chunk i in region r<i>; its functional chunks are 6 to 9. */
export const object = await sampleObject({ k: 4, m: 2, bytes: 400, stripeBytes: 400 });

export interface StripeWorldOptions {
  /** Milliseconds of chunk i. Default 100 each. */
  readonly ms?: readonly number[];
  readonly behaviours?: Readonly<Record<string, Behaviour>>;
  /** Sources whose first request fails. */
  readonly failsOnce?: readonly string[];
  readonly latency?: { meanMs: number; sdMs: number };
}

/** The sample object in six regions with a chunk each, and a record of what was asked of them. */
export class StripeWorld {
  readonly clock = new SimulatedClock();
  readonly sources: FakeSource[] = [];
  readonly records: RequestRecord[] = [];
  readonly #signals: CountingSignal[] = [];

  constructor({ ms = [], behaviours = {}, failsOnce = [], latency }: StripeWorldOptions = {}) {
    const failing = new Set(failsOnce);
    for (const [chunk, id] of object.manifest.placement.entries()) {
      const behaviour = (): Behaviour => (failing.delete(id) ? "error" : (behaviours[id] ?? "serve"));
      this.add({ id, ms: ms[chunk] ?? 100, behaviour, ...(latency && { latency }) });
    }
  }

  add(options: Omit<ConstructorParameters<typeof FakeSource>[0], "object" | "clock">): FakeSource {
    const source = new FakeSource({ object, clock: this.clock, ...options });
    this.sources.push(source);
    return source;
  }

  start(options: Partial<StripeReadOptions> & { sources?: readonly ChunkSource[] }): Promise<Map<number, Uint8Array>> {
    const { sources = this.sources, signal = new AbortController().signal, ...rest } = options;
    const counting = new CountingSignal(signal);
    this.#signals.push(counting);
    return readStripe({
      manifest: object.manifest,
      stripe: stripeShape(object.manifest, 0),
      hashes: Promise.resolve(fromBase64(object.manifest.hashes[0]!)),
      candidates: planStripe(object.manifest, 0, sources, { random: () => 0 }),
      delta: 1,
      hedge: true,
      timeoutMs: 30_000,
      codec: async () => referenceCodec,
      clock: this.clock,
      sha256: toyHash,
      onRequest: (record) => {
        if (record.outcome === "pending") this.records.push(record);
      },
      ...rest,
      signal,
    });
  }

  read(options: Parameters<StripeWorld["start"]>[0]): Promise<Map<number, Uint8Array>> {
    return this.clock.run(this.start(options));
  }

  requests(): number {
    return this.records.length;
  }

  requestsOf(id: string): number {
    return this.records.filter(({ source }) => source === id).length;
  }

  startsAt(ms: number): string[] {
    return this.records.filter(({ startMs }) => startMs === ms).map(({ source }) => source);
  }

  /** Sources by the outcome of their requests, failures apart. */
  outcomes(): Record<string, string[]> {
    const outcomes: Record<string, string[]> = {};
    for (const { outcome, source } of this.records) if (outcome !== "failed") (outcomes[outcome] ??= []).push(source);
    return outcomes;
  }

  failures(): string[] {
    return this.records.filter(({ outcome }) => outcome === "failed").map(({ source, error }) => `${source} ${error}`);
  }

  signal(id: string): AbortSignal {
    return this.sources.find((source) => source.id === id)!.requests[0]!.signal;
  }

  /** Nothing is left behind: no timer, no listener, no request without an end. */
  expectClean(): void {
    expect(this.clock.pendingTimers).toBe(0);
    expect(this.#signals.map(({ listeners }) => listeners)).toEqual(this.#signals.map(() => 0));
    for (const { outcome, endMs } of this.records) {
      expect(outcome).not.toBe("pending");
      expect(endMs).toBeDefined();
    }
  }
}
