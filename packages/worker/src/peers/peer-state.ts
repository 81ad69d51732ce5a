/**
 * This PoP among its peers, in one Durable Object: what they have said, what to say to them, and which PoP's turn it
 * is. KV only distributes these decisions.
 *
 * The object gathers cache events for 200 ms (C2P, ICDCN'15, section 3.2). Each period it sends all that has changed
 * since its last digest, which repairs everything that was lost, and at times a digest. A message states facts rather
 * than changes, so a late or repeated one does no harm. It talks to its neighbours alone (`neighbours.ts`).
 */
import { DurableObject } from "cloudflare:workers";
import { systemClock } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";
import {
  CacheEvents,
  type CacheMessage,
  isFirst,
  nearestPeers,
  neighboursOf,
  nextTurn,
  type PeerDistance,
  type PopularityDigest,
  type PeerMessage,
  type PeerReport,
  peersToMeasure,
  PeerTable,
} from "@agarose/solver/cooperation";
import type { RegionEstimate } from "@agarose/solver/planner";
import type { Held } from "../cache/held.ts";
import { log } from "../runtime/log.ts";
import { findColo } from "../runtime/durable-objects.ts";
import type { Facts } from "../runtime/sql.ts";
import { observeHealth, type ProbeHealth } from "../regions/probe-health.ts";
import type { RegionProbe } from "../regions/region-estimates.ts";
import { EDGE_LATENCY } from "../regions/region-latency.ts";
import { announcePeers, type MonitorBinding } from "../popularity/monitor-shards.ts";
import type { ValueStore } from "../runtime/storage-ports.ts";
import { sendMessage } from "./exchange.ts";
import { PeerMemory } from "./peer-memory.ts";
import { boundedDigest, boundedKeys } from "./peer-message.ts";
import { parsePopSettings, type PeerSettings } from "./peer-settings.ts";
import { formatPeersInForce, PEERS_NAME, type PeersInForce } from "./peers-snapshot.ts";

interface PeerStateEnv extends MonitorBinding {
  readonly CHUNKS: ValueStore;
}

/** A PoP's knowledge of itself at the beginning of a period. */
interface TurnRequest extends Omit<PopularityDigest, "peers"> {
  readonly probes: readonly RegionProbe[];
  /** How long to wait for the turn. */
  readonly waitMs: number;
}

/** The part of the peers that a period needs. */
export interface Turn {
  /** Whether this PoP may change what its peers depend on. */
  readonly isOurs: boolean;
  readonly peers: readonly PeerReport[];
  readonly inForce: PeersInForce;
}

/** The chunks of this PoP as of its configuration `epoch`. */
export interface Published {
  readonly epoch: number;
  readonly held: Held;
  /** Whether the publication ends this PoP's turn. */
  readonly endsTurn: boolean;
}

/** One peer in `/v1/status`. */
export interface PeerStatus {
  readonly name: string;
  readonly meanMs: number;
  readonly down: boolean;
  /** Whether no message has come for three periods. */
  readonly silent: boolean;
  readonly turn: number;
  readonly configuration: number;
  readonly objects: number;
}

/** A peer as its probes show it. */
type Place = RegionEstimate & ProbeHealth;

const GATHER_MS = 200;
const PERIOD_MS = 60_000;
/** KV takes one write a second per key. */
const VIEW_INTERVAL_MS = 1_100;

/** The peers of one PoP. Its public methods are called by RPC. */
export class PeerState extends DurableObject<PeerStateEnv> {
  readonly #pop: string;
  readonly #peers: PeerSettings | undefined;
  readonly #memory: PeerMemory;
  readonly #facts: Facts;
  readonly #table = new PeerTable();
  readonly #events: CacheEvents;
  /** The last published text, without its epoch; in memory only, because it may be longer than a row. */
  #published: string | undefined;
  /** The nearest peers as they were told. */
  #toldNear: readonly string[] = [];
  /** Resolves when the next message has arrived. */
  #received = Promise.withResolvers<void>();

  constructor(state: DurableObjectState, env: PeerStateEnv) {
    super(state, env);
    const { pop, peers } = parsePopSettings(env);
    this.#pop = pop;
    this.#peers = peers;
    this.#memory = new PeerMemory(state.storage.sql);
    this.#facts = this.#memory.facts;
    // An object that has lost its memory must not pass for its own past.
    const epoch = this.#facts.get("epoch") ?? this.#facts.set("epoch", Date.now());
    this.#events = new CacheEvents(pop, { epoch, gatherMs: GATHER_MS });
    for (const [version, chunks] of this.#memory.held) this.#events.recordHeld(version, chunks, 0);
    for (const { message, receivedMs } of this.#memory.messages()) this.#table.merge(message, receivedMs);
  }

  /**
   * Merges a message with a valid signature. Returns what is known now, or undefined when the message says nothing new.
   */
  async receive(message: PeerMessage): Promise<PeersInForce | undefined> {
    const now = Date.now();
    if (!this.#table.merge(message, now)) return undefined;
    this.#memory.keep(message, now);
    this.#received.resolve();
    this.#received = Promise.withResolvers();
    if (message.cache.isComplete || message.cache.statements.length > 0) await this.#publishSoon();
    return this.inForce();
  }

  /** Returns the names of the peers to measure in the period that begins. */
  toMeasure(): string[] {
    return peersToMeasure(this.#distances(), this.#neighbours(), Math.floor(Date.now() / PERIOD_MS));
  }

  /** Sends the peers what changed. Resolves when it is this PoP's turn, or when `waitMs` milliseconds have passed. */
  async beginTurn({ popular, regions, probes, waitMs }: TurnRequest): Promise<Turn> {
    for (const probe of probes) this.#observe(probe);
    // A neighbour that has missed a digest needs another one: what changed since builds on it.
    const isDigestWanted = this.#neighbours().some((name) => this.#table.record(name)?.lacksDigest);
    this.#send(boundedDigest(this.#events.ofPeriod(this.#tick(), isDigestWanted)), {
      popular: boundedKeys(popular),
      regions,
      peers: this.#neighbours()
        .flatMap((name) => this.#place(name) ?? [])
        .map(asSource),
    });
    await this.#publishSoon();
    const isOurs = await this.#turn(waitMs);
    return { isOurs, peers: this.#reports(), inForce: this.inForce() };
  }

  /** Notes what this PoP holds now, and sends it to the peers in 200 ms. */
  async published({ epoch, held, endsTurn }: Published): Promise<void> {
    const now = this.#tick();
    for (const [version, chunks] of this.#memory.setHeld(held)) this.#events.recordHeld(version, chunks, now);
    this.#facts.set("configuration", epoch);
    if (endsTurn) this.#facts.set("turn", nextTurn(this.#ticket(), this.#tickets()));
    this.#facts.set("outboxDirty", 1);
    await this.#alarmIn(GATHER_MS);
  }

  /** Returns what `/v1/status` shows of the peers; `turn` is this PoP's own ticket. */
  status(): { readonly turn: number; readonly peers: PeerStatus[] } {
    const now = Date.now();
    const peers = this.#neighbours().map((name): PeerStatus => {
      const { meanMs = 0, down = true } = this.#place(name) ?? {};
      const { turn = 0, configuration = 0 } = this.#table.record(name) ?? {};
      const objects = [...this.#table.cache.contentsOf(name)].length;
      return { name, meanMs, down, silent: this.#table.isSilent(name, now), turn, configuration, objects };
    });
    return { turn: this.#ticket().turn, peers };
  }

  /** Resolves to the data center that runs this object, or to null where that cannot be found out. */
  colo(): Promise<string | null> {
    return findColo();
  }

  /** Sends and publishes what has been gathered. */
  override async alarm(): Promise<void> {
    if (this.#facts.get("outboxDirty")) {
      this.#facts.set("outboxDirty", 0);
      const { dueMs } = this.#events;
      const at = this.#tick(Number.isFinite(dueMs) ? dueMs : 0);
      // A message without news of the cache still carries the ticket.
      const message = this.#events.take(at) ?? this.#nothing(at);
      this.#send(message);
      if (Number.isFinite(this.#events.dueMs)) this.#facts.set("outboxDirty", 1);
    }
    if (this.#facts.get("snapshotDirty")) await this.#publish();
    if (this.#facts.get("outboxDirty")) await this.#alarmIn(GATHER_MS);
    else if (this.#facts.get("snapshotDirty")) await this.#alarmIn(VIEW_INTERVAL_MS);
  }

  async #turn(waitMs: number): Promise<boolean> {
    const untilMs = Date.now() + waitMs;
    for (;;) {
      // The plan omits peers that do not answer, so there is no need to wait for them.
      const waitedFor = this.#tickets().filter(({ pop }) => !this.#place(pop)?.down);
      if (isFirst(this.#ticket(), waitedFor)) return true;
      const leftMs = untilMs - Date.now();
      if (leftMs <= 0) return false;
      await orUndefined(this.#received.promise, leftMs, systemClock);
    }
  }

  #ticket() {
    return { pop: this.#pop, turn: this.#facts.get("turn") ?? 0 };
  }

  #tickets() {
    return this.#table.tickets(this.#neighbours(), Date.now());
  }

  #distances(): PeerDistance[] {
    return (this.#peers?.pops ?? []).map(({ name }) => {
      const place = this.#place(name);
      return { name, meanMs: place?.usualMs === undefined ? place && Infinity : place.meanMs };
    });
  }

  /** The peers that this PoP cooperates with. */
  #neighbours(): string[] {
    const now = Date.now();
    return neighboursOf(this.#distances(), (name) => this.#table.isNearFor(name, now));
  }

  /** Returns a time that only grows, even when the clock goes back. */
  #tick(atLeast = 0): number {
    const last = this.#facts.get("statedMs") ?? 0;
    return this.#facts.set("statedMs", Math.max(Date.now(), last + 1, atLeast));
  }

  #nothing(statedMs: number): CacheMessage {
    return { node: this.#pop, epoch: this.#events.epoch, statedMs, isComplete: false, statements: [] };
  }

  /** Sends a message to every peer and waits for none: a peer that is down must not delay the others. */
  #send(cache: CacheMessage, popularity?: PopularityDigest): void {
    const { turn } = this.#ticket();
    const configuration = this.#facts.get("configuration") ?? 0;
    const nearest = nearestPeers(this.#distances());
    // Whoever is no longer near learns of it once.
    const receivers = new Set([...this.#neighbours(), ...this.#toldNear]);
    this.#toldNear = nearest;
    for (const peer of this.#peers?.pops.filter(({ name }) => receivers.has(name)) ?? []) {
      const message: PeerMessage = {
        to: peer.name,
        turn,
        configuration,
        cache,
        base: this.#events.digestMs,
        ...(this.#table.lacksDigest(peer.name) && { lacksDigest: true }),
        ...(!nearest.includes(peer.name) && { isNear: false }),
        ...(popularity ? { popularity } : {}),
      };
      const sending = sendMessage({
        peer,
        message,
        key: this.#peers!.key,
        clock: systemClock,
        fetch: (url, init) => fetch(url, init),
      });
      this.ctx.waitUntil(
        sending.catch((error: unknown) =>
          log("warn", "message to a peer failed", { pop: this.#pop, peer: peer.name, error }),
        ),
      );
    }
  }

  #observe({ region: name, ms }: RegionProbe): Place {
    const before = this.#place(name);
    const { health, estimate } = observeHealth(before, ms);
    const { meanMs, sdMs } = estimate ?? { meanMs: 0, sdMs: 0 };
    // A peer that has never answered has no known distance.
    const place: Place = { name, meanMs, sdMs, ...health, down: health.down || !estimate };
    return this.#facts.set(`place:${name}`, place);
  }

  #place(name: string): Place | undefined {
    return this.#facts.get<Place>(`place:${name}`);
  }

  /** Peers that answer probes and have sent a message recently. */
  #reports(): PeerReport[] {
    const now = Date.now();
    return this.#neighbours().flatMap((name) => {
      const place = this.#place(name);
      if (!place || place.down || this.#table.isSilent(name, now)) return [];
      const { popularity } = this.#table.record(name)!;
      const { meanMs, sdMs } = asSource(place);
      return [{ name, meanMs, sdMs, held: new Map(this.#table.cache.contentsOf(name)), popularity }];
    });
  }

  /**
   * Returns what isolates may read by. KV has the same or less under this epoch, so its next value replaces this one.
   */
  inForce(): PeersInForce {
    const peers = this.#reports().map(({ name, meanMs, sdMs, held }) => {
      return { name, meanMs: Math.round(meanMs), sdMs: Math.round(sdMs), held };
    });
    return { epoch: this.#facts.get("broadcastEpoch") ?? 0, peers };
  }

  async #publishSoon(): Promise<void> {
    this.#facts.set("snapshotDirty", 1);
    await this.#alarmIn(GATHER_MS);
  }

  /** Publishes what isolates may read by, unless they have it already. */
  async #publish(): Promise<void> {
    const waitMs = (this.#facts.get("broadcastMs") ?? 0) + VIEW_INTERVAL_MS - Date.now();
    if (waitMs > 0 && waitMs <= VIEW_INTERVAL_MS) return;
    this.#facts.set("snapshotDirty", 0);
    this.#facts.set("broadcastMs", Date.now());
    const { epoch, peers } = this.inForce();
    const text = formatPeersInForce({ epoch: 0, peers });
    if (text === this.#published) return;
    const value: PeersInForce = { epoch: this.#facts.set("broadcastEpoch", epoch + 1), peers };
    const announcing = announcePeers(this.env, value.epoch);
    this.ctx.waitUntil(
      announcing.catch((error: unknown) => log("warn", "announcing peers to isolates failed", { error })),
    );
    try {
      await this.env.CHUNKS.put(PEERS_NAME, formatPeersInForce(value));
      this.#published = text;
    } catch (error) {
      log("warn", "publishing peers failed", { pop: this.#pop, error });
      this.#facts.set("snapshotDirty", 1);
    }
  }

  async #alarmIn(ms: number): Promise<void> {
    const at = Date.now() + ms;
    const set = await this.ctx.storage.getAlarm();
    if (set === null || set > at) await this.ctx.storage.setAlarm(at);
  }
}

/** Returns a peer's cache as a source: the round trip and the time of a cache. */
function asSource({ name, meanMs, sdMs, down }: Place): RegionEstimate {
  return { name, meanMs: meanMs + EDGE_LATENCY.meanMs, sdMs, down };
}
