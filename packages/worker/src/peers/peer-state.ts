/**
 * This PoP among its peers, in one Durable Object: what they have said, what they are told, and whose turn it is. KV only
 * broadcasts what is decided here.
 *
 * Cache events are gathered for 200 ms (C2P, ICDCN'15, section 3.2), and a digest goes out each period, which makes good
 * whatever was lost. A message says how things are, not how they changed, so one that comes late or twice does no harm.
 */
import { DurableObject } from "cloudflare:workers";
import { systemClock } from "@agarose/core";
import { CacheEvents, type CacheMessage } from "@agarose/solver";
import { orUndefined } from "../platform/async.ts";
import { EDGE_LATENCY } from "../read/edge-source.ts";
import { parseSettings, type Env } from "../http/settings.ts";
import { log } from "../platform/log.ts";
import { observeHealth, type ProbeHealth } from "../region-manager/probe-health.ts";
import type { RegionEstimate } from "../state/configuration.ts";
import type { RegionProbe } from "../region-manager/region-estimates.ts";
import { sendMessage } from "./exchange.ts";
import { tellIsolates } from "../request-monitor/monitor-shards.ts";
import { PeerBook } from "./peer-table.ts";
import { PeerMemory } from "./peer-memory.ts";
import { boundedDigest, boundedKeys, type Outlook, type PeerMessage } from "./peer-message.ts";
import { PEERS_NAME, type PeersInForce } from "./peers-snapshot.ts";
import type { PeerReport } from "./saved-at-peers.ts";
import { isFirst, nextTurn } from "./turns.ts";

/** What a PoP says of itself at the beginning of a period. */
export interface TurnRequest extends Omit<Outlook, "peers"> {
  /** Of the peers. */
  readonly probes: readonly RegionProbe[];
  /** How long to wait for the turn. */
  readonly waitMs: number;
}

export interface Turn {
  /** Whether this PoP may change what its peers depend on. */
  readonly isOurs: boolean;
  /** Those that answer. */
  readonly peers: readonly PeerReport[];
  readonly inForce: PeersInForce;
}

/** What this PoP holds since it published configuration `epoch`. */
export interface Published {
  readonly epoch: number;
  readonly held: readonly (readonly [version: string, chunks: readonly number[]])[];
  /** Whether this is what came of its turn. */
  readonly endsTurn: boolean;
}

/** A peer as a person wants to see it. */
export interface PeerStatus {
  readonly name: string;
  readonly meanMs: number;
  readonly down: boolean;
  /** Nothing was heard of it for three periods. */
  readonly silent: boolean;
  readonly turn: number;
  readonly configuration: number;
  readonly objects: number;
}

/** How a peer answers probes, as a source of chunks. */
type Place = RegionEstimate & ProbeHealth;

const GATHER_MS = 200;
/** KV takes one write a second per key. */
const VIEW_INTERVAL_MS = 1_100;

export class PeerState extends DurableObject<Env> {
  readonly #pop: string;
  readonly #peers: NonNullable<ReturnType<typeof parseSettings>["peers"]> | undefined;
  readonly #memory: PeerMemory;
  readonly #book = new PeerBook();
  readonly #events: CacheEvents;
  /** Resolved when a message has come. */
  #heard = Promise.withResolvers<void>();

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    const { pop, peers } = parseSettings(env);
    this.#pop = pop;
    this.#peers = peers;
    this.#memory = new PeerMemory(state.storage.sql);
    // An object that has lost its memory must not look like its own past.
    const epoch = this.#memory.fact("epoch") ?? this.#memory.setFact("epoch", Date.now());
    this.#events = new CacheEvents(pop, { epoch, gatherMs: GATHER_MS });
    for (const [version, chunks] of this.#memory.held()) this.#events.recordHeld(version, chunks, 0);
    for (const { message, heardMs } of this.#memory.messages()) this.#book.merge(message, heardMs);
  }

  /** Takes in a message whose signature is right, and returns what is known since; undefined when it says nothing new. */
  async receive(message: PeerMessage): Promise<PeersInForce | undefined> {
    const now = Date.now();
    if (!this.#book.merge(message, now)) return undefined;
    this.#memory.keep(message, now);
    this.#heard.resolve();
    this.#heard = Promise.withResolvers();
    if (message.cache.isComplete || message.cache.statements.length > 0) await this.#broadcastSoon();
    return this.inForce();
  }

  /** Tells the peers how things look from here, and resolves once it is this PoP's turn, or has not been in time. */
  async beginTurn({ popular, regions, probes, waitMs }: TurnRequest): Promise<Turn> {
    const places = probes.map((probe) => this.#observe(probe));
    this.#tell(boundedDigest(this.#events.digest(this.#tick())), {
      popular: boundedKeys(popular),
      regions,
      peers: places.map(asSource),
    });
    await this.#broadcastSoon();
    const isOurs = await this.#turn(waitMs);
    return { isOurs, peers: this.#reports(), inForce: this.inForce() };
  }

  /** Takes note of what this PoP holds now, and tells the peers in a moment. */
  async published({ epoch, held, endsTurn }: Published): Promise<void> {
    const now = this.#tick();
    const before = new Map(this.#memory.held());
    for (const [version, chunks] of held) {
      if (before.get(version)?.join() !== chunks.join()) this.#events.recordHeld(version, chunks, now);
      before.delete(version);
    }
    for (const version of before.keys()) this.#events.recordHeld(version, [], now);
    this.#memory.setHeld(held);
    this.#memory.setFact("configuration", epoch);
    if (endsTurn) this.#memory.setFact("turn", nextTurn(this.#ticket(), this.#tickets()));
    this.#memory.setFact("untold", 1);
    await this.#alarmIn(GATHER_MS);
  }

  /** What peers hold of a version, those that are silent or down left out. */
  holders(version: string): Map<string, readonly number[]> {
    const answering = new Set(this.#reports().map(({ name }) => name));
    return new Map([...this.#book.cache.holdersOf(version)].filter(([name]) => answering.has(name)));
  }

  /** What is known of the peers, for people; `turn` is this PoP's own ticket. */
  status(): { readonly turn: number; readonly peers: PeerStatus[] } {
    const now = Date.now();
    const peers = (this.#peers?.pops ?? []).map(({ name }): PeerStatus => {
      const { meanMs = 0, down = true } = this.#place(name) ?? {};
      const { turn = 0, configuration = 0 } = this.#book.record(name) ?? {};
      const objects = [...this.#book.cache.heldBy(name)].length;
      return { name, meanMs, down, silent: this.#book.isSilent(name, now), turn, configuration, objects };
    });
    return { turn: this.#ticket().turn, peers };
  }

  override async alarm(): Promise<void> {
    if (this.#memory.fact("untold")) {
      this.#memory.setFact("untold", 0);
      const { dueMs } = this.#events;
      const at = this.#tick(Number.isFinite(dueMs) ? dueMs : 0);
      // Without any news of the cache, it still says whose turn it is.
      const message = this.#events.take(at) ?? this.#nothing(at);
      this.#tell(message);
      if (Number.isFinite(this.#events.dueMs)) this.#memory.setFact("untold", 1);
    }
    if (this.#memory.fact("unbroadcast")) await this.#broadcast();
    if (this.#memory.fact("untold")) await this.#alarmIn(GATHER_MS);
    else if (this.#memory.fact("unbroadcast")) await this.#alarmIn(VIEW_INTERVAL_MS);
  }

  async #turn(waitMs: number): Promise<boolean> {
    const untilMs = Date.now() + waitMs;
    for (;;) {
      // One that does not answer is not planned with, and so not waited for.
      const waitedFor = this.#tickets().filter(({ pop }) => !this.#place(pop)?.down);
      if (isFirst(this.#ticket(), waitedFor)) return true;
      const leftMs = untilMs - Date.now();
      if (leftMs <= 0) return false;
      await orUndefined(this.#heard.promise, leftMs, systemClock);
    }
  }

  #ticket() {
    return { pop: this.#pop, turn: this.#memory.fact("turn") ?? 0 };
  }

  #tickets() {
    return this.#book.tickets(this.#names(), Date.now());
  }

  #names(): string[] {
    return (this.#peers?.pops ?? []).map(({ name }) => name);
  }

  /** A time of ours that only grows, whatever the clock does. */
  #tick(atLeast = 0): number {
    const last = this.#memory.fact("statedMs") ?? 0;
    return this.#memory.setFact("statedMs", Math.max(Date.now(), last + 1, atLeast));
  }

  #nothing(statedMs: number): CacheMessage {
    return { node: this.#pop, epoch: this.#events.epoch, statedMs, isComplete: false, statements: [] };
  }

  /** Nobody waits for it: a peer that is down must not hold up the others. */
  #tell(cache: CacheMessage, outlook?: Outlook): void {
    const { turn } = this.#ticket();
    const configuration = this.#memory.fact("configuration") ?? 0;
    for (const peer of this.#peers?.pops ?? []) {
      const message: PeerMessage = { to: peer.name, turn, configuration, cache, ...(outlook ? { outlook } : {}) };
      const sending = sendMessage({
        peer,
        message,
        key: this.#peers!.key,
        clock: systemClock,
        fetch: (url, init) => fetch(url, init),
      });
      this.ctx.waitUntil(
        sending.catch((error: unknown) =>
          log("warn", "a peer was not told", { pop: this.#pop, peer: peer.name, error }),
        ),
      );
    }
  }

  #observe({ region: name, ms }: RegionProbe): Place {
    const before = this.#place(name);
    const { health, estimate } = observeHealth(before, ms);
    const { meanMs, sdMs } = estimate ?? { meanMs: 0, sdMs: 0 };
    // One that has never answered is nowhere yet.
    const place: Place = { name, meanMs, sdMs, ...health, down: health.down || !estimate };
    return this.#memory.setFact(`place:${name}`, place);
  }

  #place(name: string): Place | undefined {
    return this.#memory.fact<Place>(`place:${name}`);
  }

  /** Peers that answer probes and have spoken lately. */
  #reports(): PeerReport[] {
    const now = Date.now();
    return this.#names().flatMap((name) => {
      const place = this.#place(name);
      if (!place || place.down || this.#book.isSilent(name, now)) return [];
      const { outlook } = this.#book.record(name)!;
      const { meanMs, sdMs } = asSource(place);
      return [{ name, meanMs, sdMs, held: new Map(this.#book.cache.heldBy(name)), outlook }];
    });
  }

  /** What isolates may read by. KV has the same, or less, under this epoch, so what it shows next takes its place. */
  inForce(): PeersInForce {
    const peers = this.#reports().map(({ name, meanMs, sdMs, held }) => {
      return { name, meanMs: Math.round(meanMs), sdMs: Math.round(sdMs), held: Object.fromEntries(held) };
    });
    return { epoch: this.#memory.fact("broadcastEpoch") ?? 0, peers };
  }

  async #broadcastSoon(): Promise<void> {
    this.#memory.setFact("unbroadcast", 1);
    await this.#alarmIn(GATHER_MS);
  }

  /** Writes what isolates may read by, unless that is what they have. */
  async #broadcast(): Promise<void> {
    const waitMs = (this.#memory.fact("broadcastMs") ?? 0) + VIEW_INTERVAL_MS - Date.now();
    if (waitMs > 0 && waitMs <= VIEW_INTERVAL_MS) return;
    this.#memory.setFact("unbroadcast", 0);
    this.#memory.setFact("broadcastMs", Date.now());
    const { epoch, peers } = this.inForce();
    const text = JSON.stringify(peers);
    if (text === this.#memory.fact<string>("broadcast")) return;
    const value: PeersInForce = { epoch: this.#memory.setFact("broadcastEpoch", epoch + 1), peers };
    const telling = tellIsolates(this.env, value.epoch);
    this.ctx.waitUntil(telling.catch((error: unknown) => log("warn", "isolates were not told", { error })));
    try {
      await this.env.CHUNKS.put(PEERS_NAME, JSON.stringify(value));
      this.#memory.setFact("broadcast", text);
    } catch (error) {
      log("warn", "peers were not broadcast", { pop: this.#pop, error });
      this.#memory.setFact("unbroadcast", 1);
    }
  }

  async #alarmIn(ms: number): Promise<void> {
    const at = Date.now() + ms;
    const set = await this.ctx.storage.getAlarm();
    if (set === null || set > at) await this.ctx.storage.setAlarm(at);
  }
}

/** A peer's cache: the way there, and what a cache takes. */
function asSource({ name, meanMs, sdMs, down }: Place): RegionEstimate {
  return { name, meanMs: meanMs + EDGE_LATENCY.meanMs, sdMs, down };
}
