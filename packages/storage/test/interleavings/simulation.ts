/**
 * Runs a schedule, then heals everything and looks at what is left. The same schedule always runs the same way.
 */
import { loadCodec } from "@agarose/ec-wasm/node";
import { createEncoderPool } from "@agarose/ec-wasm/encoder-pool";
import { createHash } from "node:crypto";
import { acceptUnsigned, CHUNK_PREFIX, manifestName, parseManifest, type Manifest } from "@agarose/core/format";
import { parseConfig, type Config } from "../../src/config/config.ts";
import { historyPrefix } from "../../src/commit/names.ts";
import { nodeSha256 } from "../../src/objects/sha256.ts";
import type { ObjectVerdict } from "../../src/objects/verify-object.ts";
import { ReadWriteReadStore } from "../../src/buckets/read-write-read.ts";
import { Bucket, type StoredObject } from "./world/bucket.ts";
import type { Engines } from "./engines.ts";
import { EventLoop } from "./world/event-loop.ts";
import { Forger } from "./world/forger.ts";
import { isLinearizable, type HistoryEntry } from "./linearizability.ts";
import { Model, seenRecord, Violation } from "./model.ts";
import { KEY, runOperation, sha256Of, storing, type OperationContext } from "./operations.ts";
import { Process, type Fate } from "./world/process.ts";
import { MACHINES, PUBLISHER, type Machine, type Publisher } from "./world/publisher.ts";
import type { Operation, Schedule } from "./schedules/schedule.ts";
import { SimulatedStore, type Network } from "./world/store.ts";

/** The findings of a run. */
export interface Outcome {
  /** The first promise that was broken; undefined when none was. */
  readonly violation: string | undefined;
  /** Lines of what happened, when asked for. */
  readonly trace: readonly string[];
  readonly events: Events;
}

/** How often what happened, so that a test sees that its faults fired. */
export interface Events {
  requests: number;
  faults: number;
  kills: number;
  suspensions: number;
  /** Manifests that a region has made up. */
  forgeries: number;
  /** Conditional writes that were refused. */
  refusals: number;
  /** Copies of replaced manifests that came into a bucket. */
  copies: number;
  acknowledged: number;
  /** Kept versions that were brought back, versions that were rewritten otherwise, removals by age, and renames. */
  restores: number;
  strongReads: number;
  recodes: number;
  expiries: number;
  renames: number;
  /** Extra chunks that were stored. */
  heats: number;
  /** Keys that were claimed in a batch. */
  batches: number;
  /** Uploads of pages that were begun, and those that were committed. */
  uploads: number;
  commits: number;
}

/** Nothing yet. */
export function noEvents(): Events {
  const trouble = { faults: 0, forgeries: 0, kills: 0, suspensions: 0, refusals: 0 };
  return {
    requests: 0,
    ...trouble,
    copies: 0,
    acknowledged: 0,
    strongReads: 0,
    restores: 0,
    recodes: 0,
    expiries: 0,
    renames: 0,
    heats: 0,
    batches: 0,
    uploads: 0,
    commits: 0,
  };
}

/** A number of its own, so that the others are the same without a history. */
const HISTORY_READER = 20_000;
const HISTORY = historyPrefix(KEY);
const CHUNKS = `${CHUNK_PREFIX}${KEY}!`;
const encoder = createEncoderPool();
/** The content of the final put. */
const LAST_CONTENT = 1_000;
const HOUR_MS = 3_600_000;
const ATTEMPTS_WRITING = 3;
const NEW_NAME = "renamed";

/** Runs a schedule with the engines given. */
export async function simulate(schedule: Schedule, engines: Engines, isTraced = false): Promise<Outcome> {
  // WebAssembly compiles in its own thread, so it has to be there before virtual time starts.
  await loadCodec();
  return new Simulation(schedule, engines, isTraced).run();
}

class Simulation {
  readonly #schedule: Schedule;
  readonly #engines: Engines;
  readonly #loop = new EventLoop();
  readonly #model: Model;
  readonly #buckets: readonly Bucket[];
  readonly #config: Config;
  readonly #renamed: Config;
  readonly #network: Network;
  readonly #history: StoredObject[] = [];
  readonly #forger = new Forger();
  /** A region that lies forges, so there are signatures. */
  readonly #publisher: Publisher | undefined;
  readonly #trace: string[] | undefined;
  readonly #events = noEvents();
  readonly #clients: HistoryEntry[] = [];
  readonly #pages: OperationContext["pages"] = new Map();
  readonly #tokens = new Map<number, string>();
  #moment = 0;
  #violation: string | undefined;
  #isHealed = false;
  #by = { id: -1, name: "start" };

  constructor(schedule: Schedule, engines: Engines, isTraced: boolean) {
    this.#schedule = schedule;
    this.#engines = engines;
    this.#trace = isTraced ? [] : undefined;
    this.#model = new Model(schedule.regions, schedule.hostile, (schedule.keepHours ?? 0) * HOUR_MS);
    this.#config = configOf(schedule);
    this.#renamed = renamedOf(this.#config);
    const signing = schedule.machines ? MACHINES.updated : PUBLISHER;
    this.#publisher = (schedule.machines ?? schedule.hostile !== undefined) ? signing : undefined;
    this.#buckets = Array.from({ length: schedule.regions }, (_, region) => {
      const nowMs = (): number => this.#loop.nowMs + schedule.regionSkewMs[region]!;
      const onChange = (name: string, after: StoredObject | undefined): void => this.#onChange(region, name, after);
      return new Bucket(nowMs, !schedule.unconditional.includes(region), onChange);
    });
    this.#network = {
      seed: schedule.seed,
      loop: this.#loop,
      buckets: this.#buckets,
      faultOf: (region) => {
        if (this.#isHealed) return undefined;
        const { nowMs } = this.#loop;
        return schedule.faults.find((f) => f.region === region && f.fromMs <= nowMs && nowMs < f.toMs);
      },
      hostile: () => (this.#isHealed ? undefined : schedule.hostile),
      known: { history: this.#history, forgeries: this.#forger.forgeries },
      isHealed: () => this.#isHealed,
      execute: (process, region, what, run) => {
        this.#events.requests++;
        this.#by = process;
        const result = run();
        const { status } = result as { status: number };
        this.#note(process, `  region ${region} ${what}: ${status}${process.isDead ? " (after its end)" : ""}`);
        return result;
      },
      note: (process, region, text) => {
        if (text === "forges") this.#events.forgeries++;
        else this.#events.faults++;
        this.#note(process, `  region ${region} ${text}`);
      },
    };
  }

  async run(): Promise<Outcome> {
    const { operations } = this.#schedule;
    try {
      const planned = operations.map(({ id, atMs, operation, fate }) => this.#start(id, operation, fate, atMs));
      await this.#settle(planned);
      if (this.#violation === undefined) await this.#heal();
      if (this.#schedule.isLinear && !isLinearizable(this.#clients)) {
        const lines = this.#clients.map((entry) => JSON.stringify(entry));
        throw new Violation(`no order of what the clients were told explains it: ${lines.join(", ")}`);
      }
    } catch (error) {
      this.#violation ??= describe(error);
    }
    this.#events.refusals = this.#buckets.reduce((sum, { refusals }) => sum + refusals, 0);
    return { violation: this.#violation, trace: this.#trace ?? [], events: this.#events };
  }

  /** Starts an operation and returns a function that says whether it is over. */
  #start(id: number, operation: Operation, fate: Fate, atMs: number): () => boolean {
    const name = `${operation.verb} ${id}`;
    let isOver = false;
    const process = new Process(id, name, this.#loop, this.#schedule.seed, fate, (what) => {
      if (what === "killed") this.#events.kills++;
      else this.#events.suspensions++;
      this.#note(process, what);
    });
    this.#loop.after(atMs, () => {
      this.#note(process, `starts: ${JSON.stringify(operation)}`);
      runOperation(operation, this.#contextOf(process)).then(
        () => (isOver = true),
        (error: unknown) => {
          isOver = true;
          this.#violation ??= describe(error);
        },
      );
    });
    return () => isOver || process.isDead;
  }

  /** Lets time pass until all operations are over. */
  async #settle(isOver: readonly (() => boolean)[]): Promise<void> {
    const isDone = (): boolean => this.#violation !== undefined || isOver.every((over) => over());
    if (!(await this.#loop.run(isDone))) throw new Violation("an operation waits for something that never comes");
    if (this.#violation !== undefined) throw new Violation(this.#violation);
  }

  /**
   * Everything answers again. What is there must be readable, `repair` must make it whole, the key must take a put, and
   * `gc` must remove the rest.
   */
  async #heal(): Promise<void> {
    const lastFaultMs = Math.max(0, ...this.#schedule.faults.map(({ toMs }) => toMs));
    await this.#sleep(Math.max(0, lastFaultMs - this.#loop.nowMs) + 60_000);
    this.#isHealed = true;
    let id = 10_000;
    const next = async (...operations: readonly Operation[]): Promise<void> =>
      this.#settle(operations.map((operation) => this.#start(id++, operation, {}, 0)));
    if (this.#schedule.isLinear) await next({ verb: "read", reads: 1, pauseMs: 0 });
    await next({ verb: "repair", quick: false });
    if (!isSettled(await this.#verify(id++))) {
      // A repair waits for writers that may be alive.
      await this.#sleep(3 * HOUR_MS);
      await next(...this.#walks(this.#healing()));
      const verdict = await this.#verify(id++);
      if (!isSettled(verdict)) throw new Violation(`repair left the object damaged: ${JSON.stringify(verdict)}`);
    }
    if (this.#model.mustRead && this.#model.newest?.upload === undefined)
      throw new Violation("an acknowledged put is gone");
    await next({ verb: "get", reads: 1, pauseMs: 0 });
    if (this.#schedule.renamedAtMs !== undefined) await this.#checkNames(next);
    await this.#readHistory(HISTORY_READER);
    await next({ verb: "put", content: LAST_CONTENT });
    if (this.#model.newest?.sha256 !== sha256Of(LAST_CONTENT)) throw new Violation("the last put did not succeed");
    if (this.#schedule.endsWithGc) {
      for (let n = 0; n < 2; n++) {
        await this.#sleep(26 * HOUR_MS);
        await next(...this.#walks({ verb: "gc" }));
      }
      // A slow answer is enough for a put to leave a region out.
      await next(...this.#walks(this.#healing()));
      if (!(await this.#verify(id++)).sound) throw new Violation("the object is damaged after gc");
    }
    await next({ verb: "get", reads: 1, pauseMs: 0 });
  }

  /** Once its move has ended, no manifest has the former name. */
  async #checkNames(next: (operation: Operation) => Promise<void>): Promise<void> {
    await next({ verb: "rename" });
    if (this.#hasFormerName()) {
      // A rename waits for writers that may be alive.
      await this.#sleep(3 * HOUR_MS);
      await next({ verb: "rename" });
      if (this.#hasFormerName()) throw new Violation("a region still has the former name in its manifest");
    }
    await next({ verb: "get", reads: 1, pauseMs: 0 });
  }

  #hasFormerName(): boolean {
    const { name } = this.#config.regions[0]!;
    const texts = this.#buckets.map(({ objects }) => String(Buffer.from(objects.get(manifestName(KEY))?.bytes ?? [])));
    return texts.some((text) => text.includes(`"${name}"`));
  }

  /** Every version that was acknowledged and is to be kept can be read by its copy. */
  async #readHistory(id: number): Promise<void> {
    // Writes that a lying region lost may be too many, in addition to those that others missed.
    if (this.#schedule.hostile !== undefined) return;
    const process = new Process(id, `history ${id}`, this.#loop, this.#schedule.seed);
    const own = this.#contextOf(process);
    const context = { ...storing(own), stores: own.stores.reading };
    for (const { suffix, region, sha256 } of this.#model.keptCopies(this.#loop.nowMs)) {
      const { bytes } = this.#buckets[region]!.objects.get(`${HISTORY}${suffix}`)!;
      const manifest = (await parseManifest(bytes, {
        key: KEY,
        trust: acceptUnsigned,
        sha256: nodeSha256,
      })) as Manifest;
      const hasher = createHash("sha256");
      const read = this.#engines.getObject(manifest, undefined, async (part) => hasher.update(part), context);
      let problem: unknown;
      let isOver = false;
      read.then(
        () => (isOver = true),
        (error: unknown) => {
          isOver = true;
          problem = error;
        },
      );
      await this.#settle([() => isOver]);
      if (problem === undefined && hasher.digest("hex") === sha256) continue;
      throw new Violation(`the kept version ${suffix} cannot be read: ${(problem as Error | undefined)?.message}`);
    }
  }

  /** By listings, in half of the schedules in a walk. */
  #healing(): Operation {
    return this.#schedule.seed % 2 === 0 && this.#schedule.shards === undefined
      ? { verb: "repair", quick: true }
      : { verb: "scrub", isDeep: false };
  }

  /** The walks of all shards at the same time, where a schedule has shards. */
  #walks(operation: Operation): Operation[] {
    const { shards = 1 } = this.#schedule;
    if (shards === 1) return [operation];
    return Array.from({ length: shards }, (_, at) => ({ ...operation, shard: { index: at + 1, count: shards } }));
  }

  async #verify(id: number) {
    const process = new Process(id, `verify ${id}`, this.#loop, this.#schedule.seed);
    const own = this.#contextOf(process);
    const verdict = this.#engines.verifyObject(KEY, { ...storing(own), stores: own.stores.reading });
    let isOver = false;
    const end = (): void => void (isOver = true);
    verdict.then(end, end);
    await this.#settle([() => isOver]);
    return verdict;
  }

  async #sleep(ms: number): Promise<void> {
    let isOver = false;
    this.#loop.after(ms, () => (isOver = true));
    await this.#settle([() => isOver]);
  }

  #contextOf(process: Process): OperationContext {
    const { renamedAtMs = Number.POSITIVE_INFINITY } = this.#schedule;
    const config = this.#loop.nowMs < renamedAtMs ? this.#config : this.#renamed;
    const storesWith = (attempts: number) =>
      config.regions.map((region, index) => {
        const store = new SimulatedStore(region, index, process, this.#network, attempts);
        // As `conditionalWrites: false` does, which `doctor` recommends for such a store.
        return this.#schedule.unconditional.includes(index) ? new ReadWriteReadStore(store, process.clock) : store;
      });
    return {
      engines: this.#engines,
      config,
      stores: { writing: storesWith(ATTEMPTS_WRITING), reading: storesWith(1) },
      codec: loadCodec,
      encoder: async () => encoder,
      process,
      publisher: this.#publisherOf(process),
      machine: this.#machineOf(process),
      model: this.#model,
      history: this.#clients,
      pages: this.#pages,
      tokens: this.#tokens,
      tick: () => ++this.#moment,
      isHealthySince: (fromMs) =>
        this.#isHealed ||
        !this.#schedule.faults.some((fault) => fault.fromMs <= this.#loop.nowMs && fault.toMs >= fromMs),
      note: (text) => {
        if (text.startsWith("strongly read")) this.#events.strongReads++;
        if (text.startsWith("acknowledged")) this.#events.acknowledged++;
        if (text.startsWith("restored")) this.#events.restores++;
        if (text.startsWith("recoded")) this.#events.recodes++;
        if (text === "removed by expire") this.#events.expiries++;
        if (text.endsWith("in a batch")) this.#events.batches += text.startsWith("claimed") ? 1 : 0;
        if (text.startsWith("began upload")) this.#events.uploads++;
        if (text.startsWith("committed upload")) this.#events.commits++;
        if (text === "renamed") this.#events.renames++;
        if (text.endsWith(" extra chunks")) this.#events.heats += Number.parseInt(text);
        this.#note(process, text);
      },
    };
  }

  /** Undefined where all machines have one configuration. */
  #machineOf({ id }: Process): Machine | undefined {
    const { machines } = this.#schedule;
    return machines && (machines[id] ?? "updated");
  }

  #publisherOf(process: Process): Publisher | undefined {
    const machine = this.#machineOf(process);
    return machine ? MACHINES[machine] : this.#publisher;
  }

  #onChange(region: number, name: string, after: StoredObject | undefined): void {
    if (this.#violation !== undefined) return;
    try {
      if (name === manifestName(KEY)) this.#onManifest(region, after);
      else if (name.startsWith(HISTORY)) {
        if (after) this.#events.copies++;
        this.#model.changeCopy(region, name.slice(HISTORY.length), after !== undefined, this.#loop.nowMs);
      } else if (!after && name.startsWith(CHUNKS)) {
        this.#model.removeChunk(region, name.slice(CHUNKS.length).split("/")[0]!, this.#loop.nowMs);
      }
    } catch (error) {
      this.#violation ??= describe(error);
    }
  }

  #onManifest(region: number, after: StoredObject | undefined): void {
    if (after) {
      this.#history.push(after);
      if (this.#schedule.hostile !== undefined) void this.#forger.learn(after);
    }
    const record = after && seenRecord(after.bytes);
    const what = record ? `generation ${record.generation}, upload ${record.upload?.slice(0, 4) ?? "none"}` : "nothing";
    this.#note(this.#by, `  region ${region} now has ${what}`);
    this.#model.change(region, record, this.#by, this.#loop.nowMs);
  }

  #note(by: { readonly name: string }, text: string): void {
    this.#trace?.push(`${(this.#loop.nowMs / 1000).toFixed(3).padStart(12)} s  ${by.name.padEnd(12)} ${text}`);
  }
}

/** Whether an object is whole, removed everywhere, or was never there. */
function isSettled({ sound, manifests }: ObjectVerdict): boolean {
  return sound || manifests.every(({ state }) => state === "missing");
}

const configs = new Map<string, Config>();

function configOf({ regions, code, keepHours, expireHours }: Schedule): Config {
  const names = Array.from({ length: regions }, (_, index) => `r${index}`);
  const json = JSON.stringify({
    regions: names.map((name) => ({ name, provider: name, endpoint: "http://localhost:1", bucket: `bucket-${name}` })),
    code,
    stripeBytes: 24,
    survive: { regions: 1, providers: 1 },
    ...(keepHours !== undefined && { keep: [{ prefix: KEY.slice(0, 3), time: `${keepHours}h` }] }),
    ...(expireHours !== undefined && { expire: [{ prefix: KEY.slice(0, 3), time: `${expireHours}h` }] }),
  });
  const config = configs.get(json) ?? parseConfig(json, "agarose.config.json");
  configs.set(json, config);
  return config;
}

/** The configuration on the way to another name of the first region. */
function renamedOf(config: Config): Config {
  const regions = config.regions.map((region, index) =>
    index === 0 ? { ...region, name: NEW_NAME, formerly: region.name } : region,
  );
  return { ...config, regions };
}

function describe(error: unknown): string {
  if (error instanceof Violation) return error.message;
  return `an engine failed in an unexpected way: ${(error as Error).stack ?? String(error)}`;
}
