/**
 * Plays the abuse of an hour, or of a part of it, against a PoP in real workerd, as fast as the PoP takes it. The
 * memory of the workerd process is read from `/proc`. Beside it a good reader reads all the time and compares every
 * byte.
 */
import { get } from "node:http";
import { stripeShape, type Manifest } from "@agarose/core/format";
import { FrameReader } from "@agarose/core/sources";
import { freePort } from "@agarose/dev-world/free-port";
import { descendants, residentBytes } from "@agarose/dev-world/process-memory";
import { clientHeaders, POP, putCached, randomBytes, startWorld, type Status, type TestWorld } from "../world.ts";
import { watchHeap } from "../heap.ts";
import { ABUSES, leaveAll, type AbuseKind, type Outcome, type Target } from "./kinds.ts";

/** The memory limit of one isolate: developers.cloudflare.com/workers/platform/limits/#memory. */
export const ISOLATE_BYTES_MAX = 128 * 1000 * 1000;

const VARIABLES = { MANIFEST_TTL_SECONDS: "600" };
/** Small young generations: Miniflare's own services are ten more isolates, each with one. */
const V8_FLAGS = "--expose-gc --max-semi-space-size=1";
const HOUR_SECONDS = 3_600;
const STRIPE_BYTES = 4 * 1024 * 1024;
const LARGE = "video";
const LARGE_BYTES = 2 * STRIPE_BYTES;
const SMALL = Array.from({ length: 16 }, (_, i) => `page/${i}`);
const SMALL_BYTES = 100_000;
const EVENTS_AT_ONCE = 24;
const SAMPLE_MS = 50;
const COLLECT_MS = 1_000;
const ORDINARY_AT_ONCE = 16;
const READ_PAUSE_MS = 200;
const SETTLE_MS = 1_500;
const PERIODS_PER_HOUR = 60;

/** The result of one kind. */
export interface KindReport {
  readonly kind: AbuseKind;
  readonly events: number;
  /** How often each outcome came. */
  readonly outcomes: ReadonlyMap<Outcome, number>;
}

/** The result of the abuse. */
export interface AbuseReport {
  readonly kinds: readonly KindReport[];
  readonly seconds: number;
  /** Resident memory of workerd after 16 ordinary readers at once, and before the abuse. */
  readonly idleBytes: number;
  /** The highest sample during the abuse. */
  readonly peakBytes: number;
  /** After all clients have left. */
  readonly afterBytes: number;
  /** The highest sample of what the PoP's isolate has in use, in V8's heap and in array buffers. */
  readonly isolateBytes: number;
  /** Reads of the good reader that brought the right bytes. */
  readonly goodReads: number;
  /** Failures of its other reads. */
  readonly problems: readonly string[];
  readonly periods: number;
  readonly isolate: Status["isolate"];
}

/** Plays `hours` of abuse, and resolves when a good reader has read everything once more after it. */
export async function playAbuse(hours: number, onProgress: (line: string) => void = () => {}): Promise<AbuseReport> {
  const before = descendants(process.pid, "workerd");
  const inspectorPort = await freePort();
  // Miniflare passes them on. A workerd without a limit lets garbage lie; one at its limit collects it.
  process.env["MINIFLARE_WORKERD_V8_FLAGS"] = V8_FLAGS;
  const world = await startWorld(VARIABLES, { inspectorPort });
  try {
    const [workerd] = descendants(process.pid, "workerd").filter((pid) => !before.includes(pid));
    if (workerd === undefined) throw new Error("workerd is not below this process");
    const reader = await GoodReader.start(world);
    await reader.readAll();
    // workerd's allocator never returns memory, so the abuse is compared with ordinary traffic.
    await reader.readAtOnce(ORDINARY_AT_ONCE);
    const heap = await watchHeap(inspectorPort, `core:user:${POP}`, COLLECT_MS);
    await pause(SETTLE_MS);
    const idleBytes = residentBytes(workerd)!;
    let peakBytes = idleBytes;
    const sampling = setInterval(() => (peakBytes = Math.max(peakBytes, residentBytes(workerd) ?? 0)), SAMPLE_MS);
    const startMs = performance.now();
    const stop = new AbortController();
    const reading = reader.readUntil(stop.signal);
    const played = await playEvents(world, hours, onProgress).finally(() => {
      stop.abort();
      leaveAll();
    });
    const seconds = (performance.now() - startMs) / 1_000;
    await reading;
    clearInterval(sampling);
    await pause(SETTLE_MS);
    const afterBytes = residentBytes(workerd)!;
    await reader.readAll();
    heap.stop();
    const { isolate } = await world.status();
    const { goodReads, problems } = reader;
    const isolateBytes = Math.max(...heap.samples);
    return { ...played, seconds, idleBytes, peakBytes, afterBytes, isolateBytes, goodReads, problems, isolate };
  } finally {
    await world.close();
  }
}

/** Plays the events of all kinds, mixed by their rates. */
async function playEvents(
  world: TestWorld,
  hours: number,
  onProgress: (line: string) => void,
): Promise<Pick<AbuseReport, "kinds" | "periods">> {
  const target: Target = { url: world.url, large: LARGE, small: SMALL };
  const kinds = ABUSES.map((kind) => ({
    kind,
    events: Math.round(kind.clients * kind.perSecond * HOUR_SECONDS * hours),
    outcomes: new Map<Outcome, number>(),
  }));
  const all = kinds.flatMap((played) => {
    return Array.from({ length: played.events }, (_, n) => ({ played, n, at: (n + 0.5) / played.events }));
  });
  all.sort((a, b) => a.at - b.at);
  const periodsMax = Math.max(1, Math.round(PERIODS_PER_HOUR * hours));
  let periods = 0;
  let period = Promise.resolve();
  let next = 0;
  const work = async (): Promise<void> => {
    for (let event = all[next++]; event !== undefined; event = all[next++]) {
      const { played, n, at } = event;
      const { kind, outcomes } = played;
      const address = `203.0.${113 + ABUSES.indexOf(kind)}.${n % kind.clients}`;
      const outcome = await kind.act(target, address, n).catch((error: unknown) => String(error));
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (at * periodsMax >= periods) {
        periods++;
        period = period.then(() => world.pops.cron(POP));
      }
      if (next % 5_000 === 0) onProgress(`${next} of ${all.length} events`);
    }
  };
  await Promise.all(Array.from({ length: EVENTS_AT_ONCE }, work));
  await period;
  return { kinds, periods };
}

/** Reads objects whole, decoded by the PoP and as bundles, and compares all bytes. */
class GoodReader {
  readonly problems: string[] = [];
  goodReads = 0;
  readonly #world: TestWorld;
  readonly #contents = new Map<string, { readonly content: Uint8Array; readonly manifest: Manifest }>();

  private constructor(world: TestWorld) {
    this.#world = world;
  }

  /** Stores the objects and has the large one cached. */
  static async start(world: TestWorld): Promise<GoodReader> {
    const reader = new GoodReader(world);
    const objects = [
      ...SMALL.map((key, i) => ({ key, content: randomBytes(SMALL_BYTES, i + 1) })),
      { key: LARGE, content: randomBytes(LARGE_BYTES, 99) },
    ];
    for (const { key, content } of objects) {
      const manifest = await world.put(key, content, { stripeBytes: STRIPE_BYTES });
      reader.#contents.set(key, { content, manifest });
    }
    await putCached(world, LARGE, objects.at(-1)!.content, { stripeBytes: STRIPE_BYTES });
    return reader;
  }

  async readAll(): Promise<void> {
    for (const key of this.#contents.keys()) await this.#read(key);
  }

  /** So many readers read the large object and some small ones, each in both ways. */
  async readAtOnce(readers: number): Promise<void> {
    const keys = [...this.#contents.keys()];
    const one = async (_: unknown, i: number): Promise<void> => {
      for (const key of [LARGE, keys[i % keys.length]!]) await this.#read(key);
    };
    await Promise.all(Array.from({ length: readers }, one));
  }

  async readUntil(signal: AbortSignal): Promise<void> {
    const keys = [...this.#contents.keys()];
    for (let i = 0; !signal.aborted; i++) {
      await this.#read(i % 4 === 0 ? LARGE : keys[i % keys.length]!);
      await pause(READ_PAUSE_MS);
    }
  }

  async #read(key: string): Promise<void> {
    const { content, manifest } = this.#contents.get(key)!;
    const startMs = performance.now();
    try {
      await this.#readDecoded(key, content);
      await this.#readBundle(key, content, manifest);
      this.goodReads++;
    } catch (error) {
      const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
      this.problems.push(`${key} at ${new Date().toISOString()}, ${seconds} s: ${String(error)}`);
    }
  }

  async #readDecoded(key: string, content: Uint8Array): Promise<void> {
    const bytes = await getWhole(`${this.#world.url}/o/${key}`);
    if (!Buffer.from(content).equals(bytes)) throw new Error(`/o/ sent ${bytes.length} wrong bytes`);
  }

  /** The data shards of a bundle are parts of the object; where it has none, memory is short. */
  async #readBundle(key: string, content: Uint8Array, manifest: Manifest): Promise<void> {
    const bytes = await getWhole(`${this.#world.url}/v1/read/${key}`);
    const frames = new FrameReader(new Response(bytes).body!);
    for (;;) {
      const { type, stripe, chunk, payload } = await frames.next();
      if (type === "end") return;
      if (type !== "chunk" || chunk >= manifest.k) continue;
      const { start, shardBytes } = stripeShape(manifest, stripe);
      const expected = content.subarray(start + chunk * shardBytes, start + (chunk + 1) * shardBytes);
      if (!Buffer.from(expected).equals(payload.subarray(0, expected.length))) {
        throw new Error(`the bundle has a wrong chunk ${chunk} of stripe ${stripe}`);
      }
    }
  }
}

/** Reads an answer on its own connection: workerd may end one that `fetch` keeps, just as it is used again. */
function getWhole(url: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false, headers: clientHeaders("198.51.100.1") }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("error", reject).on("end", () => {
        const body = Buffer.concat(parts);
        if (response.statusCode === 200) resolve(new Uint8Array(body));
        else reject(new Error(`${url} answered ${response.statusCode}: ${body.toString()}`));
      });
    }).on("error", reject);
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
