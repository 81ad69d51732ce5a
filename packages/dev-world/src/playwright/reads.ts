/** The reads of a test's pages, as the service worker reports them. */
import type { BrowserContext, Page } from "@playwright/test";
import { quantile } from "@agarose/solver/simulator";
import type { ReadEndEvent, ReadEvent, ReadStartEvent, RequestEvent } from "@agarose/sw";
import type { LocalWorld } from "../client/local-world.ts";

/** The request of one chunk. Times are on one clock for all requests of a read. */
export type ReadRequest = Pick<
  RequestEvent,
  "stripe" | "chunk" | "source" | "bytes" | "startMs" | "endMs" | "outcome" | "error"
>;

/** One read that has ended. */
export interface Read extends Omit<ReadEndEvent, "type" | "read"> {
  readonly key: string;
  readonly range: string | undefined;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** The expected time of the first stripe according to the read plan, in milliseconds. Undefined without a plan. */
  readonly expectedMs: number | undefined;
  /** In the order in which they were sent. */
  readonly requests: readonly ReadRequest[];
}

/** A read that assertions of latency repeat. */
export interface RepeatedRead {
  readonly page: Page;
  readonly path: string;
  readonly reads: Pick<Reads, "all">;
  readonly world: Pick<LocalWorld, "app" | "copy">;
}

interface Collected {
  readonly start: ReadStartEvent;
  /** By number. The event of its end replaces that of its start. */
  readonly requests: Map<number, RequestEvent>;
  expectedMs?: number;
  end?: ReadEndEvent;
}

const BINDING = "__agaroseRead";
const SETTLE_MS_MAX = 10_000;
const SETTLE_POLL_MS = 10;

/** Collects the reads of every page of a browser context. */
export class Reads {
  readonly #reads = new Map<string, Collected>();
  readonly #world: RepeatedRead["world"];

  private constructor(world: RepeatedRead["world"]) {
    this.#world = world;
  }

  /** Starts to collect. Pages that are open already are not covered. */
  static async collect(context: BrowserContext, world: RepeatedRead["world"]): Promise<Reads> {
    const reads = new Reads(world);
    await context.exposeBinding(BINDING, (_source, event: ReadEvent) => reads.#add(event));
    await context.addInitScript((binding) => {
      new BroadcastChannel("agarose").addEventListener("message", ({ data }) => {
        const report = (globalThis as never as Record<string, (event: unknown) => void>)[binding]!;
        for (const event of data) report(event);
      });
    }, BINDING);
    return reads;
  }

  /** Returns what `expect(…).toHaveP99Below` and its like take: reads of an object of the app, such as `/ec/a.jpg`. */
  of(page: Page, path: string): RepeatedRead {
    return { page, path, reads: this, world: this.#world };
  }

  /** Returns the reads in the order of their start. Waits for those that have not ended. */
  async all(): Promise<Read[]> {
    await this.#settle();
    return [...this.#reads.values()].flatMap(({ start: { key, range, at }, expectedMs, requests, end }) => {
      if (!end) return [];
      const { type: _type, read: _read, ...rest } = end;
      return [{ key, range, at, expectedMs, requests: [...requests.values()].map(withoutIds), ...rest }];
    });
  }

  /** Waits for the reads in progress, and returns the number of reads. */
  async count(): Promise<number> {
    return (await this.all()).length;
  }

  /** Returns the median duration in milliseconds. Rejects when there was no read. */
  p50(): Promise<number> {
    return this.percentile(50);
  }

  /** Returns the 99th percentile of the durations in milliseconds. Rejects when there was no read. */
  p99(): Promise<number> {
    return this.percentile(99);
  }

  /** Returns the nearest-rank percentile of the durations in milliseconds. `percent` is in (0, 100]. */
  async percentile(percent: number): Promise<number> {
    const sorted = (await this.all()).map(({ ms }) => ms).toSorted((a, b) => a - b);
    if (sorted.length === 0) throw new Error("there was no read: does the service worker control the page?");
    return quantile(sorted, percent / 100);
  }

  /** Forgets all reads so far. */
  clear(): void {
    this.#reads.clear();
  }

  /** The event of a read's end may arrive after the page has its bytes. */
  async #settle(): Promise<void> {
    const deadlineMs = Date.now() + SETTLE_MS_MAX;
    while (Date.now() < deadlineMs) {
      if ([...this.#reads.values()].every(({ end }) => end)) return;
      await new Promise((resolve) => setTimeout(resolve, SETTLE_POLL_MS));
    }
  }

  /** Every page of an origin reports the same events, so each is kept once. */
  #add(event: ReadEvent): void {
    if (event.type === "read-start") {
      if (!this.#reads.has(event.read)) this.#reads.set(event.read, { start: event, requests: new Map() });
      return;
    }
    const read = this.#reads.get(event.read);
    if (!read) return;
    if (event.type === "plan") read.expectedMs = event.expectedMs;
    if (event.type === "request") read.requests.set(event.request, event);
    if (event.type === "read-end") read.end = event;
  }
}

function withoutIds({ stripe, chunk, source, bytes, startMs, endMs, outcome, error }: RequestEvent): ReadRequest {
  return { stripe, chunk, source, bytes, startMs, endMs, outcome, error };
}
