/**
 * A cluster cache as EC-Cache (OSDI 2016, section 6) measures it. Each server sends requested pieces one after another
 * over its link, and a read ends when enough have arrived. Objects are whole, with copies of the popular ones
 * (selective replication), or cut into k splits with parity (EC-Cache), of which a client reads k + delta and uses the
 * first k.
 *
 * The model omits TCP, several reads of one client at a time, and caches that overflow. A straggler is one
 * transfer that takes longer, for a split by as much as for a whole object (section 5.2). It does not delay the others
 * of its server.
 */
import { imbalancePercent } from "@agarose/solver/planner";
import { cumulate, sampleIndex, seededRandom, type Random } from "@agarose/solver/random";
import { spreadRedundancy } from "./redundancy.ts";

export interface ReadClusterStudy {
  readonly seed: number;
  readonly reads: number;
  readonly servers: number;
  readonly objects: number;
  readonly objectBytes: number;
  /** Exponent of the popularity; 0 makes all objects equally popular. */
  readonly zipfExponent: number;
  /** Memory for redundancy, as a share of the data. */
  readonly memoryOverhead: number;
  /** Splits of an object; 1 with delta 0 is selective replication. */
  readonly k: number;
  readonly delta: number;
  readonly serverMbitPerSecond: number;
  readonly clientMbitPerSecond: number;
  /**
   * Reads at random moments that keep this share of all links busy without extra requests, or this many clients without
   * pauses.
   */
  readonly load: { readonly utilization: number } | { readonly clients: number };
  /** Milliseconds that each further server costs the client. */
  readonly connectionMs?: number;
  /** Decoding speed of the client; only with splits and parity. */
  readonly decodeMbPerSecond?: number;
  /** The share of transfers that straggle, and how many times as long a whole object's transfer then takes. */
  readonly straggler?: { readonly probability: number; readonly factor: number };
  /** Other traffic: some servers, drawn at intervals, have only a share of their links. */
  readonly background?: { readonly servers: number; readonly everyMs: number; readonly linkShare: number };
  /** Failed servers, and how long an object takes that the other servers cannot deliver. */
  readonly failure?: { readonly servers: number; readonly storageMs: number };
}

export interface ReadClusterResult {
  readonly meanMs: number;
  /** At the shares 0.01 to 0.99 in steps of 0.01, and at 0.999. */
  readonly quantileMs: (share: number) => number;
  /** EC-Cache's lambda: the busiest server against the average without extra requests, in percent. */
  readonly imbalancePercent: number;
  /** Reads from the storage below the cache. */
  readonly storageReads: number;
}

/** Plays `reads` reads. Equal seeds give equal results. */
export function simulateReadCluster(study: ReadClusterStudy): ReadClusterResult {
  const random = seededRandom(study.seed);
  const cluster = new ReadCluster(study, random.fork(1));
  const draw = random.fork(2);
  const arrivals = arrivalsOf(study, random.fork(3));
  const times = new Float64Array(study.reads);
  for (let read = 0; read < study.reads; read++) {
    times[read] = cluster.read(arrivals.next(), draw);
    arrivals.done(times[read]!);
  }
  const sorted = times.toSorted();
  const ideal = (study.reads * study.objectBytes) / study.servers;
  return {
    meanMs: times.reduce((sum, ms) => sum + ms, 0) / study.reads,
    quantileMs: (share) => sorted[Math.min(study.reads - 1, Math.max(0, Math.ceil(share * study.reads) - 1))]!,
    imbalancePercent: imbalancePercent([...cluster.sentBytes], ideal),
    storageReads: cluster.storageReads,
  };
}

interface Arrivals {
  /** When the next read begins; not before the previous one began. */
  next(): number;
  /** Reports how long that read took. */
  done(ms: number): void;
}

function arrivalsOf({ load, objectBytes, serverMbitPerSecond, servers }: ReadClusterStudy, random: Random): Arrivals {
  if ("utilization" in load) {
    const gapMs = (objectBytes * 8) / (serverMbitPerSecond * 1000 * load.utilization * servers);
    let now = 0;
    return { next: () => (now += gapMs * random.exponential()), done: () => undefined };
  }
  const freeAt = new Float64Array(load.clients);
  let client = 0;
  return {
    next: () => {
      for (let c = 0; c < freeAt.length; c++) if (freeAt[c]! < freeAt[client]!) client = c;
      return freeAt[client]!;
    },
    done: (ms) => {
      freeAt[client]! += ms;
    },
  };
}

class ReadCluster {
  readonly sentBytes: Float64Array;
  storageReads = 0;
  readonly #study: ReadClusterStudy;
  readonly #freeAtMs: Float64Array;
  readonly #linkShare: Float64Array;
  readonly #isGone: Uint8Array;
  /** Servers of each object's pieces. */
  readonly #servers: Int32Array[];
  readonly #cumulative: Float64Array;
  readonly #splitBytes: number;
  readonly #background: Random;
  #nextBackgroundMs = 0;

  constructor(study: ReadClusterStudy, random: Random) {
    const { servers, objects, k, delta, memoryOverhead, zipfExponent, failure } = study;
    this.#study = study;
    this.sentBytes = new Float64Array(servers);
    this.#freeAtMs = new Float64Array(servers);
    this.#linkShare = new Float64Array(servers).fill(1);
    this.#isGone = Uint8Array.from({ length: servers }, (_, s) => (s < (failure?.servers ?? 0) ? 1 : 0));
    this.#splitBytes = study.objectBytes / k;
    this.#background = random.fork(3);
    const popularity = Float64Array.from({ length: objects }, (_, rank) => (rank + 1) ** -zipfExponent);
    // Every object has delta parities, or there would be no extra pieces to request. The remaining memory flattens
    // popularity.
    const extra = Math.max(0, Math.round(objects * (memoryOverhead * k - delta)));
    const pieces = spreadRedundancy(popularity, k + delta, extra, servers);
    const all = Array.from({ length: servers }, (_, s) => s);
    this.#servers = Array.from(pieces, (count) => Int32Array.from(random.shuffle(all).slice(0, count)));
    this.#cumulative = cumulate(popularity);
  }

  /** Milliseconds of a read that begins at `now`. */
  read(now: number, random: Random): number {
    const { k, delta, objectBytes, connectionMs = 0, clientMbitPerSecond, decodeMbPerSecond = Infinity } = this.#study;
    this.#moveBackground(now);
    const available = Array.from(this.#servers[sampleIndex(this.#cumulative, random)]!).filter(
      (server) => !this.#isGone[server],
    );
    if (available.length < k) {
      this.storageReads++;
      return this.#study.failure!.storageMs;
    }
    const asked = random.shuffle(available).slice(0, k + delta);
    const arrivals = asked.map((server) => this.#send(server, now, random)).toSorted((a, b) => a - b);
    // The client's link carries all that is sent, used or not.
    const clientMs = (asked.length * this.#splitBytes * 8) / (clientMbitPerSecond * 1000);
    const decodeMs = k > 1 ? objectBytes / (decodeMbPerSecond * 1000) : 0;
    return Math.max(arrivals[k - 1]! - now, clientMs) + connectionMs * asked.length + decodeMs;
  }

  /** Queues one piece at a server; returns its time of arrival. */
  #send(server: number, now: number, random: Random): number {
    const { serverMbitPerSecond, straggler } = this.#study;
    this.sentBytes[server]! += this.#splitBytes;
    const ms = (this.#splitBytes * 8) / (serverMbitPerSecond * 1000 * this.#linkShare[server]!);
    const sent = Math.max(now, this.#freeAtMs[server]!) + ms;
    this.#freeAtMs[server] = sent;
    const isSlow = straggler !== undefined && random.next() < straggler.probability;
    return isSlow ? sent + ms * this.#study.k * (straggler.factor - 1) : sent;
  }

  #moveBackground(now: number): void {
    const { background } = this.#study;
    if (!background) return;
    for (; this.#nextBackgroundMs <= now; this.#nextBackgroundMs += background.everyMs) {
      this.#linkShare.fill(1);
      const busy = this.#background.shuffle(Array.from(this.#linkShare.keys())).slice(0, background.servers);
      for (const server of busy) this.#linkShare[server] = background.linkShare;
    }
  }
}
