/**
 * Parallel ranges of one object over a line that they share, on a simulated clock: what they fetch, and how long they
 * take while a region is silent, slow or dead.
 */
import { describe, expect, test } from "vitest";
import { chunkName, objectUrl, openRead, piecesOf, RegionSource, type RequestRecord } from "@agarose/core";
import { referenceCodec, sampleObject, SimulatedClock, toyHash } from "@agarose/core/testing";
import { HedgeBudget } from "./hedge-budget.ts";
import { LatencyTracker, sourceId } from "./latency-tracker.ts";

/** Six chunks of 250 kB in each of three stripes. */
const object = await sampleObject({ k: 4, m: 2, bytes: 3_000_000, stripeBytes: 1_000_000, leaves: true });
const { manifest } = object;
const REGIONS = [...new Set(manifest.placement)];
const TICK_MS = 10;

type Trouble = "silent" | "slow" | "dead";

/** A line whose bodies share its rate. A region answers after its round trip. */
class Line {
  readonly clock = new SimulatedClock();
  readonly tracker = new LatencyTracker(this.clock);
  readonly budget = new HedgeBudget(this.clock);
  fetchedBytes = 0;
  /** How often the trouble struck. */
  struck = 0;
  readonly #bytesPerMs: number;
  readonly #troubles: Readonly<Record<string, Trouble>>;
  /** Bodies that share the line now. */
  #open = 0;

  constructor(bytesPerMs: number, troubles: Readonly<Record<string, Trouble>> = {}) {
    this.#bytesPerMs = bytesPerMs;
    this.#troubles = troubles;
    for (const [i, name] of REGIONS.entries()) {
      const meanMs = this.rttOf(i);
      this.tracker.seed(sourceId("region", name), { meanMs, sdMs: meanMs / 10 });
    }
  }

  rttOf(region: number): number {
    return 20 + 20 * region;
  }

  /** Reads a range, and returns its bytes. */
  async read(start: number, bytes: number): Promise<Uint8Array> {
    const { clock, tracker, budget } = this;
    const piece = bytes;
    const sources = REGIONS.map((name, i) => {
      const id = sourceId("region", name);
      const url = `https://${name}.test`;
      const latency = () => tracker.estimate(id, piece);
      return new RegionSource({
        manifest,
        region: { name, url },
        latency,
        fetch: (at, init) => this.#fetch(i, at, init),
      });
    });
    const onRequest = (record: RequestRecord): void => {
      budget.note(record);
      const { endMs, startMs, outcome, source, bytes: size } = record;
      const id = sourceId("region", source);
      if (outcome === "used" || outcome === "unused") tracker.observe(id, endMs! - startMs, size);
      else if (outcome === "failed") tracker.failed(id);
      else if (outcome === "cancelled") tracker.observeAtLeast(id, endMs! - startMs, size);
    };
    const ports = { clock, random: () => 0.5, sha256: toyHash, codec: async () => referenceCodec };
    const range = { start, end: start + bytes };
    const { body } = await openRead({ manifest, sources, range, hedge: budget.hedge, onRequest, ...ports });
    return new Uint8Array(await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
  }

  async #fetch(
    region: number,
    url: string,
    { headers, signal }: { headers?: Record<string, string>; signal?: AbortSignal },
  ) {
    const trouble = this.#troubles[REGIONS[region]!];
    if (trouble) this.struck++;
    await this.clock.sleep(trouble === "silent" ? 1e9 : this.rttOf(region), signal);
    if (trouble === "dead") throw new TypeError("connection refused");
    const [from = 0, to = 0] =
      /=(\d+)-(\d+)/
        .exec(headers?.["range"] ?? "")
        ?.slice(1)
        .map(Number) ?? [];
    const whole = await this.#stored(region, url);
    const sent = whole.slice(from, to + 1);
    let at = 0;
    let isOpen = true;
    this.#open++;
    const close = (): void => {
      if (isOpen) this.#open--;
      isOpen = false;
    };
    signal?.addEventListener("abort", close);
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          await this.clock.sleep(TICK_MS, signal);
          const pace = trouble === "slow" ? 0.02 : 1;
          const part = sent.slice(at, (at += Math.ceil((pace * TICK_MS * this.#bytesPerMs) / this.#open)));
          this.fetchedBytes += part.length;
          controller.enqueue(part);
          if (at < sent.length) return;
          close();
          controller.close();
        },
        cancel: close,
      },
      { highWaterMark: 0 },
    );
    return { status: 206, headers: new Headers(), body };
  }

  async #stored(region: number, url: string): Promise<Uint8Array> {
    const base = `https://${REGIONS[region]}.test`;
    for (const [chunk, name] of manifest.placement.entries()) {
      if (name !== REGIONS[region]) continue;
      const shards = [0, 1, 2].map((stripe) => object.shard(stripe, chunk));
      if (objectUrl(base, chunkName(manifest.key, manifest.upload, chunk)) === url) return Buffer.concat(shards);
    }
    return Buffer.concat([await object.leaves(0), await object.leaves(1), await object.leaves(2)]);
  }
}

/** Ranges, each within one chunk, that begin at once. */
const rangesOf = (count: number, bytes: number): number[] =>
  Array.from(
    { length: count },
    (_, i) => (i % 3) * 1_000_000 + Math.floor(i / 3) * 250_000 + Math.floor((250_000 - bytes) / 2),
  );

async function readAll(line: Line, starts: readonly number[], bytes: number): Promise<number[]> {
  const took = starts.map(async (start) => {
    const fromMs = line.clock.now();
    expect(Buffer.compare(await line.read(start, bytes), object.bytes.subarray(start, start + bytes))).toBe(0);
    return line.clock.now() - fromMs;
  });
  return line.clock.run(Promise.all(took));
}

/** The blocks that a range lies in, in bytes. */
function neededBytes(start: number, bytes: number): number {
  return piecesOf(manifest, { start, end: start + bytes })!.reduce((sum, { stripe }) => sum + stripe.shardBytes, 0);
}

describe.each([
  ["20 Mbit/s", 2_500],
  ["5 Mbit/s", 625],
])("on a line of %s", (_, bytesPerMs) => {
  test.each([
    [12, 200_000],
    [12, 100_000],
  ])("%i ranges of %i bytes at once fetch at most 1.15 times the blocks they lie in", async (count, bytes) => {
    const line = new Line(bytesPerMs);
    // What a client has measured before: a small range of every region.
    for (const start of rangesOf(12, 1_000)) await line.clock.run(line.read(start, 1_000));
    line.fetchedBytes = 0;
    const starts = rangesOf(count, bytes);
    await readAll(line, starts, bytes);
    const needed = starts.reduce((sum, start) => sum + neededBytes(start, bytes), 0);
    expect(line.fetchedBytes).toBeLessThan(1.15 * needed);
  });
});

describe("while a region", () => {
  // The times of the reader that asked k others whenever a piece was late.
  test.each<[Trouble, number, number]>([
    ["silent", 1, 146],
    ["silent", 12, 356],
    ["slow", 1, 156],
    ["slow", 12, 586],
    ["dead", 1, 140],
    ["dead", 12, 450],
  ])("is %s, %i ranges at once take at most %i ms of the line's time", async (trouble, count, mostMs) => {
    const line = new Line(12_500, { [manifest.placement[0]!]: trouble });
    const took = await readAll(line, rangesOf(count, 100_000), 100_000);
    expect(line.struck).toBeGreaterThan(0);
    expect(Math.max(...took)).toBeLessThanOrEqual(mostMs);
  });
});
