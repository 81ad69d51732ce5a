/**
 * Histories of one key at one PoP: reads in two isolates, writes that regions miss, regions that come and go, isolates
 * that restart, invocations that die, and clocks that are moved. The PoP's own code looks the manifests up, in
 * virtual time. The check is the bound of docs/internals/guarantees.md: while a majority of the regions answers and
 * agrees, no answer is older than the newest write that was acknowledged `boundMs` before. Only what one region
 * answered for a key that the PoP did not know may be older, for as long.
 */
import { createHash } from "node:crypto";
import { toAgaroseError, type FetchPort, type Sha256 } from "@agarose/core";
import { acceptUnsigned, encodeHashes, encodeManifest, sealManifest, sealTombstone } from "@agarose/core/format";
import { SourceHealth } from "@agarose/core/sources";
import { seededRandom } from "@agarose/solver/random";
import { Traffic } from "../../src/http/traffic.ts";
import { FrontCache } from "../../src/read/front-cache.ts";
import { ManifestStore, type FoundManifest, type LookupContext } from "../../src/read/manifest-store.ts";
import { lookUp, LOOK_UP_MS } from "../../src/read/region-look-up.ts";
import { CircuitBreakers } from "../../src/regions/circuit-breakers.ts";
import { VirtualTime } from "./virtual-time.ts";

/** A mistake that the check must find. */
export type Mutant =
  "renews by the first region" | "keeps manifests twice as long" | "takes any answer to a condition for a 304";

/** The outcome of one history. */
export interface HistoryReport {
  readonly reads: number;
  /** Reads that the bound said something about: a write was acknowledged not long before it. */
  readonly bound: number;
  /** Reads of what had been replaced, within the bound. */
  readonly stale: number;
  /** Reads of what had been replaced longer ago, and one region had answered for an unknown key. */
  readonly unknown: number;
  /** Look-ups that no majority answered. */
  readonly unconfirmed: number;
  /** Answers of regions that still had the manifest that an isolate held. */
  readonly unchanged: number;
  readonly died: number;
  /** The first broken promise, with what happened before it; undefined for none. */
  readonly violation: string | undefined;
}

const KEY = "page";
const EPOCH_MS = Date.UTC(2026, 10, 27);
const TTL_SECONDS = 10;
const DURATION_MS = 240_000;
/** A look-up that an invocation takes with it counts as dead after 10 s, which is longer than one may take. */
const BOUND_MS = TTL_SECONDS * 1_000 + Math.max(LOOK_UP_MS, 10_000);
/** Regions that answer in this time are never given up by a look-up. */
const QUICK_MS = 300;
/** How long a task waits that no read waits for. */
const LATER_MS = 2_000;
const TRACE_LINES = 60;

const sha256: Sha256 = async (bytes) => new Uint8Array(createHash("sha256").update(bytes).digest());

interface StoredRecord {
  readonly generation: number;
  readonly isTombstone: boolean;
  readonly bytes: Uint8Array;
}

interface Region {
  readonly name: string;
  readonly usualMs: number;
  state: "up" | "down" | "hangs";
  ms: number;
  record: StoredRecord | undefined;
}

interface Isolate {
  readonly name: string;
  /** How far its clock is ahead. */
  aheadMs: number;
  memory: Memory;
}

/** The memory that an isolate loses when it restarts. */
interface Memory {
  readonly store: ManifestStore;
  readonly laggards: SourceHealth;
  readonly breakers: CircuitBreakers;
  /** The newest acknowledged generation that it has shown. */
  shown: number;
}

/** Plays the history of `seed`. */
export async function playHistory(seed: number, mutant?: Mutant): Promise<HistoryReport> {
  const history = new History(seed, mutant);
  return history.play();
}

class History {
  readonly #time = new VirtualTime();
  readonly #random: () => number;
  readonly #mutant: Mutant | undefined;
  readonly #regions: Region[];
  readonly #isolates: Isolate[];
  readonly #cache = new Map<string, { response: Response; untilMs: number }>();
  readonly #traffic = new Traffic();
  readonly #trace: string[] = [];
  readonly #acked: { readonly generation: number; readonly isTombstone: boolean; readonly atMs: number }[] = [];
  readonly #tombstones: number[] = [];
  /** When a look-up of an unknown key last began that found this generation. */
  readonly #firstMs = new Map<number, number>();
  readonly #hasDeaths: boolean;
  readonly #clockMs: number;
  #generation = 0;
  /** Since when a majority has answered and agreed; infinite while it does not. */
  #soundSinceMs = Number.POSITIVE_INFINITY;
  /** The range of all clocks so far. */
  #aheadMs = { least: 0, most: 0 };
  #counts = { reads: 0, bound: 0, stale: 0, unknown: 0, unchanged: 0, died: 0 };
  #violation: string | undefined;

  constructor(seed: number, mutant: Mutant | undefined) {
    const random = seededRandom(seed);
    this.#random = () => random.next();
    this.#mutant = mutant;
    const count = this.#chance(0.5) ? 3 : 5;
    this.#regions = Array.from({ length: count }, (_, i) => {
      const usualMs = 5 + Math.floor(this.#random() * 200);
      return { name: `r${i}`, usualMs, ms: usualMs, state: "up" as const, record: undefined };
    });
    this.#hasDeaths = this.#chance(0.4);
    this.#clockMs = this.#chance(0.3) ? 5_000 : 0;
    this.#isolates = ["a", "b"].map((name) => ({ name, aheadMs: 0, memory: this.#fresh(name) }));
  }

  async play(): Promise<HistoryReport> {
    this.#judge();
    const actors = [this.#write(), this.#disturb(), this.#repair(), ...this.#isolates.map((one) => this.#readOn(one))];
    for (const actor of actors) actor.catch((error: unknown) => this.#fail(`an actor failed: ${String(error)}`));
    await this.#time.run(DURATION_MS);
    return { ...this.#counts, unconfirmed: this.#traffic.unconfirmed, violation: this.#violation };
  }

  // --- the PoP ---------------------------------------------------------------------------------------------------

  /** The initial memory of an isolate. */
  #fresh(name: string): Memory {
    const now = (): number => EPOCH_MS + this.#time.now() + this.#isolates.find((one) => one.name === name)!.aheadMs;
    const cache = {
      match: async (url: string) => {
        const entry = this.#cache.get(url);
        return entry && entry.untilMs > this.#time.now() ? entry.response.clone() : undefined;
      },
      put: async (url: string, response: Response) => {
        const seconds = Number(/max-age=(\d+)/.exec(response.headers.get("cache-control") ?? "")?.[1]);
        this.#cache.set(url, { response, untilMs: this.#time.now() + 1_000 * seconds });
      },
    };
    return {
      shown: 0,
      store: new ManifestStore({
        ttlSeconds: this.#mutant === "keeps manifests twice as long" ? 2 * TTL_SECONDS + 20 : TTL_SECONDS,
        regions: new Set(this.#regions.map((region) => region.name)),
        frontCache: new FrontCache(
          { pop: "fra", host: () => "fra.example" },
          this.#time,
          () => cache as unknown as Cache,
        ),
        clock: this.#time,
        now,
        trust: acceptUnsigned,
        sha256,
      }),
      laggards: new SourceHealth(this.#time),
      breakers: new CircuitBreakers(this.#time),
    };
  }

  async #readOn(isolate: Isolate): Promise<void> {
    for (;;) {
      await this.#time.sleep(this.#chance(0.05) ? this.#random() * 25_000 : 20 + this.#random() * 1_500);
      if (this.#chance(0.004)) {
        this.#note(`isolate ${isolate.name} starts again`);
        isolate.memory = this.#fresh(isolate.name);
      }
      void this.#read(isolate);
    }
  }

  async #read(isolate: Isolate): Promise<void> {
    const { memory } = isolate;
    // A read that is under way may still return what another one had before that ended.
    const { shown } = memory;
    const invocation = { isDead: false, isLooking: 0 };
    if (this.#hasDeaths && this.#chance(0.02)) {
      this.#time.after(this.#random() * 600, () => {
        invocation.isDead = true;
        if (invocation.isLooking === 0) return;
        this.#counts.died++;
        this.#note(`an invocation of isolate ${isolate.name} dies with its look-up`);
        if (Number.isFinite(this.#soundSinceMs)) this.#soundSinceMs = this.#time.now();
      });
    }
    const find: LookupContext["find"] = async (key, generationMin, wanted, known): Promise<FoundManifest> => {
      const isFirst = this.#mutant === "renews by the first region";
      const beganMs = this.#time.now();
      invocation.isLooking++;
      const found = await settledOf(
        lookUp(
          key,
          generationMin,
          isFirst ? "eventual" : wanted,
          {
            regions: this.#regions.map(({ name }) => ({ name, popUrl: `https://${name}` })),
            estimates: this.#regions.map(({ name, usualMs }) => ({ name, meanMs: usualMs, sdMs: 10, down: false })),
            fetch: this.#fetch,
            sha256,
            trust: acceptUnsigned,
            clock: this.#time,
            breakers: memory.breakers,
            laggards: memory.laggards,
            traffic: this.#traffic,
            onBehind: () => {},
          },
          known,
        ),
      );
      if (invocation.isDead) await new Promise(() => {});
      invocation.isLooking--;
      if ("error" in found) throw found.error;
      if (wanted === "eventual") this.#firstMs.set(found.value.manifest.generation, beganMs);
      return isFirst ? { ...found.value, isConfirmed: true } : found.value;
    };
    const later = (task: () => Promise<unknown>): void =>
      void this.#time.after(LATER_MS, () => void task().catch(() => {}));
    const outcome = await settledOf(memory.store.get(KEY, { find, waitUntil: () => {}, later }));
    if (invocation.isDead) return;
    const error = "error" in outcome ? toAgaroseError(outcome.error) : undefined;
    this.#check({ name: isolate.name, memory, shown }, "value" in outcome ? outcome.value.generation : error!.code);
  }

  readonly #fetch: FetchPort = async (url, { signal, headers }) => {
    const region = this.#regions.find(({ name }) => new URL(url).hostname === name)!;
    const abort = new Promise<never>((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    abort.catch(() => {});
    const half = (region.ms * (0.8 + 0.4 * this.#random())) / 2;
    await Promise.race([this.#time.sleep(half), abort]);
    if (region.state === "down") throw new TypeError("fetch failed");
    if (region.state === "hangs") return abort;
    const { record } = region;
    await Promise.race([this.#time.sleep(half), abort]);
    if (!record) return new Response(null, { status: 404 });
    const etag = `"${record.generation}"`;
    const condition = headers?.["if-none-match"];
    if (condition === etag || (condition && this.#mutant === "takes any answer to a condition for a 304")) {
      this.#counts.unchanged++;
      return new Response(null, { status: 304 });
    }
    return new Response(record.bytes as Uint8Array<ArrayBuffer>, { headers: { etag } });
  };

  // --- everything else -------------------------------------------------------------------------------------------

  async #write(): Promise<void> {
    for (;;) {
      const generation = ++this.#generation;
      const isTombstone = generation > 1 && this.#chance(0.15);
      const record = { generation, isTombstone, bytes: await bytesOf(generation, isTombstone) };
      if (isTombstone) this.#tombstones.push(generation);
      const before = new Map(this.#regions.map((region) => [region, region.record]));
      const held: Region[] = [];
      this.#note(`${isTombstone ? "rm" : "put"} ${generation} begins`);
      for (const region of this.#regions.toSorted(() => this.#random() - 0.5)) {
        await this.#time.sleep(this.#random() * 100);
        if (region.state !== "up" || this.#chance(0.15)) continue;
        region.record = record;
        held.push(region);
        this.#note(`${region.name} has ${generation}`);
      }
      if (held.length >= this.#majority) {
        this.#acked.push({ generation, isTombstone, atMs: this.#time.now() });
        this.#note(`${generation} is acknowledged`);
      } else if (this.#chance(0.7)) {
        for (const region of held) {
          await this.#time.sleep(this.#random() * 200);
          if (region.state !== "up" || region.record !== record) continue;
          region.record = before.get(region);
          this.#note(`${generation} is undone in ${region.name}`);
        }
      }
      this.#judge();
      await this.#time.sleep(this.#chance(0.3) ? this.#random() * 3_000 : this.#random() * 60_000);
    }
  }

  async #disturb(): Promise<void> {
    for (;;) {
      await this.#time.sleep(this.#random() * (this.#chance(0.3) ? 5_000 : 60_000));
      const region = this.#regions[Math.floor(this.#random() * this.#regions.length)]!;
      const draw = this.#random();
      if (draw < 0.25) region.state = "down";
      else if (draw < 0.45) region.state = "hangs";
      else if (draw < 0.65) region.ms = 200 + this.#random() * 4_000;
      else for (const one of this.#regions) Object.assign(one, { state: "up", ms: one.usualMs });
      this.#note(this.#regions.map(({ name, state, ms }) => `${name} ${state} ${Math.round(ms)} ms`).join(", "));
      if (this.#clockMs > 0 && this.#chance(0.5)) this.#moveClock();
      if (this.#chance(0.2)) this.#cache.clear();
    }
  }

  #moveClock(): void {
    const isolate = this.#isolates[this.#chance(0.5) ? 0 : 1]!;
    isolate.aheadMs = (2 * this.#random() - 1) * this.#clockMs;
    const { least, most } = this.#aheadMs;
    this.#aheadMs = { least: Math.min(least, isolate.aheadMs), most: Math.max(most, isolate.aheadMs) };
    this.#note(`the clock of isolate ${isolate.name} is ahead by ${Math.round(isolate.aheadMs)} ms`);
  }

  async #repair(): Promise<void> {
    for (;;) {
      await this.#time.sleep(20_000 + this.#random() * 80_000);
      const held = Map.groupBy(this.#regions, ({ record }) => record);
      const [newest] = [...held].find(([, regions]) => regions.length >= this.#majority) ?? [];
      if (!newest) continue;
      for (const region of this.#regions) {
        const isBehind = (region.record?.generation ?? 0) < newest.generation;
        if (region.state === "up" && isBehind && this.#chance(0.8)) region.record = newest;
      }
      this.#note(`a repair copies ${newest.generation}`);
    }
  }

  // --- the check -------------------------------------------------------------------------------------------------

  get #majority(): number {
    return Math.floor(this.#regions.length / 2) + 1;
  }

  /** Notes an event, after which a majority may or may not answer and agree. */
  #note(what: string): void {
    this.#trace.push(`${(this.#time.now() / 1_000).toFixed(3).padStart(10)} s  ${what}`);
    if (this.#trace.length > TRACE_LINES) this.#trace.shift();
    this.#judge();
  }

  #judge(): void {
    const newest = Math.max(0, ...this.#acked.map(({ generation }) => generation));
    const quick = this.#regions.filter(({ state, ms }) => state === "up" && ms <= QUICK_MS);
    const agreeing = Map.groupBy(quick, ({ record }) => record);
    const isSound = [...agreeing].some(
      ([record, regions]) => regions.length >= this.#majority && (record?.generation ?? 0) >= newest,
    );
    if (!isSound) this.#soundSinceMs = Number.POSITIVE_INFINITY;
    else if (!Number.isFinite(this.#soundSinceMs)) this.#soundSinceMs = this.#time.now();
  }

  /** @param answer a generation, or the code of an error. */
  #check(
    { name, memory, shown }: { readonly name: string; readonly memory: Memory; readonly shown: number },
    answer: number | string,
  ): void {
    this.#counts.reads++;
    const nowMs = this.#time.now();
    const boundMs = BOUND_MS + this.#aheadMs.most - this.#aheadMs.least;
    const isAbsent = answer === "OBJECT_NOT_FOUND";
    const newest = this.#acked.at(-1);
    if (newest && typeof answer === "number" && answer < newest.generation) this.#counts.stale++;
    if (typeof answer === "number") {
      if (answer < shown) this.#fail(`isolate ${name} goes back from ${shown} to ${answer}`);
      if (this.#acked.some(({ generation }) => generation === answer)) memory.shown = Math.max(memory.shown, answer);
    }
    const due = this.#acked.findLast(({ atMs }) => atMs <= nowMs - boundMs);
    if (!due || this.#soundSinceMs > nowMs - boundMs) return;
    if (nowMs - boundMs - due.atMs < BOUND_MS) this.#counts.bound++;
    const what = `isolate ${name} answers ${answer}, and ${due.generation} was acknowledged at ${due.atMs} ms`;
    if (typeof answer === "number") {
      if (answer > due.generation || (answer === due.generation && !due.isTombstone)) return;
      if (nowMs - (this.#firstMs.get(answer) ?? Number.NEGATIVE_INFINITY) <= boundMs) this.#counts.unknown++;
      else this.#fail(what);
    } else if (isAbsent) {
      const isRemoved = due.isTombstone || this.#tombstones.some((generation) => generation > due.generation);
      if (!isRemoved) this.#fail(what);
    } else this.#fail(what);
  }

  #fail(what: string): void {
    this.#violation ??= [...this.#trace, `${(this.#time.now() / 1_000).toFixed(3).padStart(10)} s  ${what}`].join("\n");
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }
}

async function bytesOf(generation: number, isTombstone: boolean): Promise<Uint8Array> {
  const modified = new Date(EPOCH_MS).toISOString();
  if (isTombstone) return encodeManifest(await sealTombstone({ key: KEY, generation, modified }));
  const draft = {
    key: KEY,
    generation,
    upload: String(generation).padStart(32, "0"),
    blockBytes: 1024,
    bytes: 10,
    contentType: "text/plain",
    headers: {},
    modified,
    k: 1,
    m: 1,
    stripeBytes: 1024,
    sha256: "0".repeat(64),
    placement: ["r0", "r1"],
    hashes: [encodeHashes([new Uint8Array(32), new Uint8Array(32)])],
  };
  return encodeManifest(await sealManifest(draft, sha256));
}

async function settledOf<T>(promise: Promise<T>): Promise<{ readonly value: T } | { readonly error: unknown }> {
  return promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
}
