/**
 * Reads of random worlds, written down: every request with its source, chunk, times and outcome, each call of a source,
 * and how the read ended. A change of the reader that is meant to change nothing leaves these lines equal.
 *
 * `node packages/core/test/print-reads.mjs` prints the digests of 200 worlds, and with a seed the lines of that one, so
 * that two checkouts can be compared by `diff`. The test has the digests of the first 40.
 */
import { AgaroseError, toAgaroseError } from "../src/errors.ts";
import { BlockMemory } from "../src/read/block-memory.ts";
import { systemSha256 } from "../src/ports.ts";
import type { RequestRecord } from "../src/read/read-report.ts";
import type { ChunkRequest } from "../src/sources/source.ts";
import { FakeSource, type Behaviour, type FakeSourceOptions } from "./fake-source.ts";
import { stripeShape } from "../src/format/manifest/index.ts";
import { hex, sampleObject, toyHash, type SampleObject } from "./objects/sample-object.ts";
import { concat } from "../src/format/hash-tree.ts";
import { ReadWorld, type ReadWorldOptions } from "./read-world.ts";

const BLOCK = 64 * 1024;
const OBJECTS = [
  { k: 4, m: 2, bytes: 400, stripeBytes: 400 },
  { k: 2, m: 2, bytes: 4_999, stripeBytes: 500 },
  { k: 3, m: 3, bytes: 9_001, stripeBytes: 900, regions: ["a", "b", "c", "d"] },
  { k: 1, m: 2, bytes: 1_000, stripeBytes: 300 },
  { k: 2, m: 1, bytes: 900_000, stripeBytes: 6 * BLOCK, leaves: true },
  { k: 3, m: 2, bytes: 12 * BLOCK, stripeBytes: 12 * BLOCK, leaves: true },
  { k: 3, m: 2, bytes: 300_000, stripeBytes: 150_000, regions: ["a", "b", "c"] },
];
const objects = new Map<number, Promise<SampleObject>>();

/** Returns the lines of the world of `seed`: one, two or three reads at the same time, and after each other. */
export async function recordedReads(seed: number): Promise<string[]> {
  const dice = new Dice(seed);
  const number = dice.below(OBJECTS.length);
  const object = await (objects.get(number) ?? keep(number));
  const lines: string[] = [];
  const world = new ReadWorld(object, () => ({ ...weather(dice, object) }));
  addCaches(dice, world);
  for (const source of world.sources) note(source, world, lines);
  const memory = dice.chance(0.5) ? new BlockMemory(dice.chance(0.5) ? 1 << 22 : 200_000, world.clock) : undefined;
  for (let round = 0; round < 2; round++) {
    const reads = Array.from({ length: dice.chance(0.4) ? 2 : 1 }, (_, i) =>
      read(`${round}.${i}`, world, { ...optionsOf(dice, world), ...(memory && { memory }) }, dice, lines),
    );
    await world.clock.run(Promise.all(reads)).catch((error: unknown) => lines.push(`${error}`));
    await world.clock.advance(dice.below(15_000));
  }
  lines.push(`at the end: ${world.clock.pendingTimers} timers, ${world.codecLoads} loads of the codec`);
  return lines;
}

/** Returns a line for each of the worlds 1 to `count`: its seed, and its own digest lines. */
export async function digestsOf(count: number): Promise<string> {
  let digests = "";
  for (let seed = 1; seed <= count; seed++) {
    const lines = await recordedReads(seed);
    const digest = hex(await systemSha256(new TextEncoder().encode(lines.join("\n")))).slice(0, 12);
    digests += `${seed} ${digest}\n`;
  }
  return digests;
}

function keep(number: number): Promise<SampleObject> {
  const object = sampleObject(OBJECTS[number]!);
  objects.set(number, object);
  return object;
}

/** How a source behaves: mostly well. */
function weather(dice: Dice, object: SampleObject): Omit<FakeSourceOptions, "id" | "clock"> {
  const meanMs = 20 + dice.below(300);
  const faults = dice.pick<readonly Behaviour[]>([[], [], [], ["error"], ["hang", "missing"], ["corrupt", "truncate"]]);
  const share = dice.pick([0.1, 0.5, 1]);
  const salt = dice.below(1e9);
  const of = ({ stripe, chunk }: ChunkRequest, nth: number): Dice =>
    new Dice(salt + stripe.index * 7919 + chunk * 104_729 + nth * 15_485_863);
  let asked = 0;
  return {
    ms: (request) => Math.round(meanMs * (0.5 + of(request, 0).next()) * (of(request, 1).chance(0.1) ? 8 : 1)),
    behaviour: (request) => {
      const one = of(request, ++asked);
      return one.chance(share) ? one.pick(faults.length > 0 ? faults : ["serve"]) : "serve";
    },
    latency: dice.chance(0.5) ? { meanMs, sdMs: meanMs / 4 } : { meanMs: 100, sdMs: 0, lateMs: 150 },
    object,
  };
}

/** Adds a PoP, which may learn later what it has, and another PoP. */
function addCaches(dice: Dice, world: ReadWorld): void {
  const { object, clock } = world;
  const { k, m } = object.manifest;
  const rows = Array.from({ length: k + m + k }, (_, chunk) => chunk);
  for (const kind of ["edge", "peer"] as const) {
    if (dice.chance(0.4)) continue;
    const chunks = rows.filter(() => dice.chance(dice.pick([0.2, 0.6])));
    const lateMs = dice.below(250);
    const later = dice.chance(0.5) ? dice.below(200) : undefined;
    const updated =
      later === undefined ? undefined : clock.sleep(later).then(() => void chunks.push(...rows.slice(0, 2)));
    const options = { ...weather(dice, object), id: kind, kind, object, clock, chunks, ms: lateMs };
    world.sources.push(
      new FakeSource({ ...options, ...(updated && { updated }), servesParts: dice.pick([false, "wanted", true]) }),
    );
  }
}

function optionsOf(dice: Dice, { object, clock }: ReadWorld): ReadWorldOptions {
  const { bytes } = object.manifest;
  const start = dice.below(bytes);
  const end = Math.min(bytes, start + 1 + dice.below(dice.pick([10, 1_000, 200_000, bytes])));
  const abort = new AbortController();
  if (dice.chance(0.1)) clock.after(dice.below(600), () => abort.abort());
  const draws = new Dice(dice.below(1e9));
  const stripes = dice.chance(0.15);
  return {
    ...(dice.chance(0.6) && { range: { start, end } }),
    delta: dice.below(3),
    hedge: dice.pick([true, true, false, (wanted: number, times: number) => wanted < 1e5 || times > 1]),
    timeoutMs: dice.pick([2_000, 30_000]),
    windowBytes: dice.pick([1, 1_500, 1 << 24]),
    random: () => draws.next(),
    signal: abort.signal,
    ...(dice.chance(0.15) && { fallback: dice.pick(["none", "none"] as const) }),
    stripes,
    ...((stripes || dice.chance(0.1)) && { share: (_stripe, own, signal) => own(signal) }),
  };
}

async function read(
  name: string,
  world: ReadWorld,
  options: ReadWorldOptions,
  dice: Dice,
  lines: string[],
): Promise<void> {
  const { clock } = world;
  const pauseMs = dice.chance(0.2) ? dice.below(200) : 0;
  const leavesAfter = dice.chance(0.1) ? dice.below(4) : Number.POSITIVE_INFINITY;
  const say = (line: string): void => void lines.push(`${clock.now()} read ${name}: ${line}`);
  const startMs = dice.below(120);
  await clock.sleep(startMs);
  try {
    const { body, report } = await world.open({
      ...options,
      onRequest: (record) => say(describe(record)),
      onEnd: (ended, error) => {
        const { decoding, requests } = ended;
        const why = error === undefined ? "complete" : toAgaroseError(error).code;
        say(`ended, ${why}, ${requests.length} requests, ${decoding.shards} shards decoded`);
      },
    });
    say(`opened after ${report.requests.length} requests`);
    const reader = body.getReader();
    const got: Uint8Array[] = [];
    for (let parts = 0; ; parts++) {
      if (parts === leavesAfter) return void (await reader.cancel(new AgaroseError("ABORTED", "left")));
      const { done, value } = await reader.read();
      if (done) break;
      got.push(value);
      if (pauseMs > 0) await clock.sleep(pauseMs);
    }
    say(`read ${hex(await toyHash(concat(got))).slice(0, 8)}`);
  } catch (error) {
    const { code, details } = toAgaroseError(error);
    say(`failed: ${code} ${JSON.stringify(details)}`);
  }
}

function describe(record: RequestRecord): string {
  const { stripe, chunk, source, kind, bytes, startMs, endMs, outcome, error } = record;
  return `${kind} ${source}: chunk ${chunk} of stripe ${stripe}, ${bytes} bytes, ${startMs} to ${endMs}, ${outcome} ${error}`;
}

/** Writes down what the reader asks of a source. */
function note(source: FakeSource, { clock, object }: ReadWorld, lines: string[]): void {
  const fetch = source.fetch.bind(source);
  const say = (line: string): void => void lines.push(`${clock.now()} ${source.id}: ${line}`);
  Object.assign(source, {
    fetch: (request: ChunkRequest) => {
      const { stripe, chunk, until } = request;
      const last =
        until === undefined ? stripe.index : Math.ceil(until / stripeShape(object.manifest, 0).shardBytes) - 1;
      say(`fetch ${stripe.index}/${chunk}, ${stripe.shardBytes} bytes at ${stripe.chunkOffset}, to ${last}`);
      return fetch(request);
    },
    release: (stripe: number) => say(`release ${stripe}`),
    close: () => say("close"),
  });
}

/** Chance that a seed repeats (mulberry32). */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }
}
