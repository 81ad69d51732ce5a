/**
 * Parallel ranges of one object over a line that they share, on a simulated clock: what they fetch, and how long they
 * take while a region is silent, slow or dead.
 */
import { describe, expect, test } from "vitest";
import type { FetchPort } from "@agarose/core";
import { chunkName, objectUrl } from "@agarose/core/format";
import { openRead, piecesOf, type RequestRecord } from "@agarose/core/read";
import { RegionSource } from "@agarose/core/sources";
import { referenceCodec, sampleObject, SimulatedClock, toyHash } from "@agarose/core/testing";
import { HedgeBudget } from "./hedge-budget.ts";
import { LatencyTracker, sourceId } from "./latency-tracker.ts";

/** Six chunks of 250 kB in each of three stripes. */
const object = await sampleObject({ k: 4, m: 2, bytes: 3_000_000, stripeBytes: 1_000_000, leaves: true });
const { manifest } = object;
const REGIONS = [...new Set(manifest.placement)];
/** What the line carries at a time of one body: others wait for it. */
const PART_BYTES = 64 * 1024;
/** A browser opens so many connections to a host of HTTP/1.1, and further requests wait for one. */
const CONNECTIONS = 6;

type Trouble = "silent" | "slow" | "dead";

/** A slow region sends at this share of the line's rate. */
const SLOW_PACE = 0.02;
const SLOW_PART_BYTES = 4 * 1024;

/** The connections of a browser to one host. */
class Connections {
  #free = CONNECTIONS;
  readonly #waiting: (() => void)[] = [];

  /** Resolves to how to leave, when the turn comes. */
  async enter(signal?: AbortSignal): Promise<() => void> {
    if (this.#free === 0) {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.push(resolve);
        signal?.addEventListener("abort", () => {
          if (this.#waiting.includes(resolve)) this.#waiting.splice(this.#waiting.indexOf(resolve), 1);
          reject(signal.reason as Error);
        });
      });
    } else this.#free--;
    let isInside = true;
    return () => {
      const next = isInside && this.#waiting.shift();
      if (next) next();
      else if (isInside) this.#free++;
      isInside = false;
    };
  }
}

/** A line whose bodies take turns. A region answers after its round trip. */
class Line {
  readonly clock = new SimulatedClock();
  readonly tracker = new LatencyTracker(this.clock);
  readonly budget = new HedgeBudget(this.clock);
  fetchedBytes = 0;
  /** How often the trouble struck. */
  struck = 0;
  readonly #bytesPerMs: number;
  readonly #troubles: Readonly<Record<string, Trouble>>;
  /** When the last byte so far has come through. */
  #freeAtMs = 0;
  readonly #connections = new Map(REGIONS.map((name) => [name, new Connections()]));

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
    const { body } = await openRead({ manifest, sources, range }, ports, { hedge: budget.hedge }, { onRequest });
    return new Uint8Array(await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
  }

  /** Resolves when these bytes have come through, after all that were sent before. */
  async #carry(bytes: number, signal?: AbortSignal): Promise<void> {
    this.#freeAtMs = Math.max(this.#freeAtMs, this.clock.now()) + bytes / this.#bytesPerMs;
    this.fetchedBytes += bytes;
    await this.clock.sleep(this.#freeAtMs - this.clock.now(), signal);
  }

  async #fetch(region: number, url: string, { headers, signal }: Parameters<FetchPort>[1] = {}) {
    const name = REGIONS[region]!;
    const trouble = this.#troubles[name];
    const release = await this.#connections.get(name)!.enter(signal);
    try {
      if (trouble) this.struck++;
      await this.clock.sleep(trouble === "silent" ? 1e9 : this.rttOf(region), signal);
      if (trouble === "dead") throw new TypeError("connection refused");
    } catch (error) {
      release();
      throw error;
    }
    signal?.addEventListener("abort", release);
    const [from, to] = /=(\d+)-(\d+)/
      .exec(headers?.["range"] ?? "")!
      .slice(1)
      .map(Number);
    const sent = (await this.#stored(region, url)).subarray(from, to! + 1);
    let at = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const part = sent.slice(at, (at += trouble === "slow" ? SLOW_PART_BYTES : PART_BYTES));
          if (trouble === "slow") await this.clock.sleep(part.length / (SLOW_PACE * this.#bytesPerMs), signal);
          await this.#carry(part.length, signal);
          controller.enqueue(part);
          if (at < sent.length) return;
          release();
          controller.close();
        },
        cancel: release,
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
    return object.leafList;
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
    ["silent", 1, 137],
    ["silent", 12, 312],
    ["slow", 1, 137],
    ["slow", 12, 265],
    ["dead", 1, 131],
    ["dead", 12, 320],
  ])("is %s, %i ranges at once take at most %i ms of the line's time", async (trouble, count, mostMs) => {
    const line = new Line(12_500, { [manifest.placement[0]!]: trouble });
    const took = await readAll(line, rangesOf(count, 100_000), 100_000);
    expect(line.struck).toBeGreaterThan(0);
    expect(Math.max(...took)).toBeLessThanOrEqual(mostMs);
  });
});
