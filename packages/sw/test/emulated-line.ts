/**
 * A client's line, on a simulated clock: its bodies take turns, and each comes at most at the pace of its own
 * connection. Regions answer after their round trips, and some are silent, slow or dead. The network is emulated
 * because a test of time must not depend on the machine.
 */
import { hash } from "node:crypto";
import type { FetchPort, Sha256 } from "@agarose/core";
import { chunkNameOf, chunkRegions, objectUrl } from "@agarose/core/format";
import { Line, openRead, type RequestRecord } from "@agarose/core/read";
import { RegionSource } from "@agarose/core/sources";
import { referenceCodec, SimulatedClock, type SampleObject } from "@agarose/core/testing";
import { HedgeBudget } from "../src/client/hedge-budget.ts";
import { LatencyTracker, sourceId } from "../src/client/latency-tracker.ts";

/** Computed without leaving the microtask queue, so that simulated time is exact. Objects on a line need it, too. */
export const sha256: Sha256 = async (bytes) => hash("sha256", bytes, "buffer");

/** A browser opens so many connections to a host of HTTP/1.1, and further requests wait for one. */
const CONNECTIONS = 6;
/** A slow region sends at this share of the line's rate. */
const SLOW_PACE = 0.02;
const SLOW_PART_BYTES = 4 * 1024;

/** `silent`: it does not answer; `slow`: it drips; `dead`: it refuses; `corrupt`: it sends wrong bytes. */
export type Trouble = "silent" | "slow" | "dead" | "corrupt";

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

/** The properties of a line. */
export interface EmulatedLineOptions {
  readonly object: SampleObject;
  /** Bytes per millisecond of the line. */
  readonly rate: number;
  /** Bytes per millisecond of one body at most. Default: that of the line. */
  readonly bodyRate?: number;
  /** Bytes of one body that the line carries at a time, while others wait. Default 64 KiB. */
  readonly partBytes?: number;
  /** The round trips to the regions in the order of the placement, in milliseconds. Default: 20, 40, 60 and so on. */
  readonly rttMs?: (region: number) => number;
  readonly troubles?: Readonly<Record<string, Trouble>>;
}

/** The line, and the buckets behind it. */
export class EmulatedLine {
  readonly clock = new SimulatedClock();
  readonly regions: readonly string[];
  fetchedBytes = 0;
  gets = 0;
  /** The bodies of the GETs that are open now, which a browser has in memory whole. */
  openBytes = 0;
  /** The most of them so far. */
  mostOpenBytes = 0;
  /** How often a trouble struck. */
  struck = 0;
  /** Bytes per millisecond. It may change while reads are under way. */
  rate: number;
  readonly troubles: Record<string, Trouble>;
  /** By region: the one byte of its chunk that it sends wrong. */
  readonly wrongBytes: Record<string, number> = {};
  readonly #options: EmulatedLineOptions;
  /** When the last byte so far has come through. */
  #freeAtMs = 0;
  readonly #connections: ReadonlyMap<string, Connections>;
  readonly #stored = new Map<string, Promise<Uint8Array>>();

  constructor(options: EmulatedLineOptions) {
    this.#options = options;
    this.rate = options.rate;
    this.troubles = { ...options.troubles };
    this.regions = [...new Set(chunkRegions(options.object.manifest))];
    this.#connections = new Map(this.regions.map((name) => [name, new Connections()]));
  }

  /** The address of a region's bucket. */
  urlOf(name: string): string {
    return `https://${name}.test`;
  }

  rttOf(region: number): number {
    return (this.#options.rttMs ?? ((index) => 20 + 20 * index))(region);
  }

  /** Requests a range of a chunk, or the whole of it. */
  readonly fetch: FetchPort = async (url, { headers, signal } = {}) => {
    const region = this.regions.findIndex((name) => url.startsWith(this.urlOf(name)));
    const name = this.regions[region]!;
    const release = await this.#connections.get(name)!.enter(signal);
    this.gets++;
    try {
      if (this.troubles[name]) this.struck++;
      await this.clock.sleep(this.troubles[name] === "silent" ? 1e9 : this.rttOf(region), signal);
      if (this.troubles[name] === "dead") throw new TypeError("connection refused");
    } catch (error) {
      release();
      throw error;
    }
    const stored = await this.#chunkAt(region, url);
    signal?.throwIfAborted();
    const [, from = 0, last] = (/=(\d+)-(\d+)/.exec(headers?.["range"] ?? "") ?? []).map(Number);
    const sent = stored.subarray(from, last === undefined ? undefined : last + 1);
    this.openBytes += sent.length;
    this.mostOpenBytes = Math.max(this.mostOpenBytes, this.openBytes);
    let isOpen = true;
    const end = (): void => {
      if (isOpen) this.openBytes -= sent.length;
      isOpen = false;
      release();
    };
    signal?.addEventListener("abort", end);
    let at = 0;
    let startMs = this.clock.now();
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const isSlow = this.troubles[name] === "slow";
          if (this.troubles[name] === "silent") await this.clock.sleep(1e9, signal);
          const part = sent.slice(at, (at += isSlow ? SLOW_PART_BYTES : (this.#options.partBytes ?? 64 * 1024)));
          if (this.troubles[name] === "corrupt") part[0]! ^= 1;
          const wrong = (this.wrongBytes[name] ?? -1) - from - at + part.length;
          if (wrong in part) {
            part[wrong]! ^= 1;
            this.struck++;
          }
          if (isSlow) await this.clock.sleep(part.length / (SLOW_PACE * this.rate), signal);
          // A server sends on while the line is busy, as far as its own connection goes.
          startMs += part.length / (this.#options.bodyRate ?? Number.POSITIVE_INFINITY);
          await this.clock.sleep(Math.max(0, startMs - this.clock.now()), signal);
          await this.#carry(part.length, signal);
          controller.enqueue(part);
          if (at < sent.length) return;
          end();
          controller.close();
        },
        cancel: end,
      },
      { highWaterMark: 0 },
    );
    return { status: last === undefined ? 200 : 206, headers: new Headers(), body };
  };

  /** Resolves when these bytes have come through, after all that were sent before. */
  async #carry(bytes: number, signal?: AbortSignal): Promise<void> {
    this.#freeAtMs = Math.max(this.#freeAtMs, this.clock.now()) + bytes / this.rate;
    this.fetchedBytes += bytes;
    await this.clock.sleep(this.#freeAtMs - this.clock.now(), signal);
  }

  async #chunkAt(region: number, url: string): Promise<Uint8Array> {
    const known = this.#stored.get(url) ?? this.#assemble(region, url);
    this.#stored.set(url, known);
    return known;
  }

  async #assemble(region: number, url: string): Promise<Uint8Array> {
    const { object } = this.#options;
    const { manifest } = object;
    const stripes = Array.from({ length: Math.ceil(manifest.bytes / manifest.stripeBytes) }, (_, stripe) => stripe);
    const base = this.urlOf(this.regions[region]!);
    const chunk = chunkRegions(manifest).findIndex((_, index) => objectUrl(base, chunkNameOf(manifest, index)) === url);
    if (chunk >= 0) return Buffer.concat(stripes.map((stripe) => object.shard(stripe, chunk)));
    return object.leafList;
  }
}

/** How one read went. */
export interface LineRead {
  readonly firstByteMs: number;
  readonly ms: number;
  readonly bytes: Uint8Array;
  /** When each part came, and how many bytes had come before it. */
  readonly arrivals: readonly { readonly ms: number; readonly before: number }[];
}

/** A client on a line: the reader with the measurements and the budget of a service worker. */
export class LineClient {
  readonly tracker: LatencyTracker;
  readonly budget: HedgeBudget;
  readonly line: Line;
  readonly records: RequestRecord[] = [];
  readonly #network: EmulatedLine;
  readonly #object: SampleObject;

  constructor(network: EmulatedLine, object: SampleObject) {
    const { clock } = network;
    this.#network = network;
    this.#object = object;
    this.tracker = new LatencyTracker(clock);
    this.budget = new HedgeBudget();
    this.line = new Line(clock);
    for (const [region, name] of network.regions.entries()) {
      const meanMs = network.rttOf(region);
      this.tracker.seed(sourceId("region", name), { meanMs, sdMs: meanMs / 10 });
    }
  }

  /** Reads a range, or the whole object. The consumer takes nothing for `pauseMs` when a third has come. */
  async read(
    start: number,
    end: number,
    {
      signal,
      isOrdered = true,
      isRange = start > 0 || end < this.#object.manifest.bytes,
      delta = 1,
      pauseMs = 0,
    }: { signal?: AbortSignal; isOrdered?: boolean; isRange?: boolean; delta?: number; pauseMs?: number } = {},
  ): Promise<LineRead> {
    const { clock } = this.#network;
    const { manifest } = this.#object;
    const startMs = clock.now();
    const ports = { clock, random: () => 0.5, sha256, codec: async () => referenceCodec };
    const context = isOrdered ? { ...ports, line: this.line } : ports;
    const target = {
      manifest,
      sources: this.#sources(Math.ceil(manifest.stripeBytes / manifest.k)),
      ...(isRange && { range: { start, end } }),
    };
    const policy = { delta: this.budget.delta(delta), hedge: this.budget.hedge };
    const { body } = await openRead({ ...target, ...(signal && { signal }) }, context, policy, {
      onRequest: (record) => this.#onRequest(record),
      onEnd: ({ requests }) => clock.after(0, () => this.budget.observe(manifest.k, requests)),
    });
    const parts: Uint8Array[] = [];
    const arrivals: { ms: number; before: number }[] = [];
    let came = 0;
    for await (const part of body) {
      const before = came;
      arrivals.push({ ms: clock.now() - startMs, before });
      parts.push(part);
      came += part.length;
      const third = (end - start) / 3;
      if (pauseMs > 0 && before < third && came >= third) await clock.sleep(pauseMs);
    }
    return { firstByteMs: arrivals[0]!.ms, ms: clock.now() - startMs, bytes: Buffer.concat(parts), arrivals };
  }

  #sources(shardBytes: number): RegionSource[] {
    const { manifest } = this.#object;
    const { fetch } = this.#network;
    return this.#network.regions.map((name) => {
      const latency = () => this.tracker.estimate(sourceId("region", name), shardBytes);
      return new RegionSource({ manifest, region: { name, url: this.#network.urlOf(name) }, latency, fetch });
    });
  }

  #onRequest(record: RequestRecord): void {
    const { endMs, startMs, outcome, source, bytes, follows } = record;
    const id = sourceId("region", source);
    if (outcome === "pending") this.records.push(record);
    else if (outcome === "failed") this.tracker.failed(id);
    else if (follows) this.tracker.heard(id);
    else if (outcome === "cancelled") this.tracker.observeAtLeast(id, endMs! - startMs, bytes);
    else this.tracker.observe(id, endMs! - startMs, bytes);
  }
}
