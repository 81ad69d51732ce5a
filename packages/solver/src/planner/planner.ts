/**
 * The planner: runs one of the solver's policies over the requests of each period and returns what the cache should
 * hold. Deployed PoPs and the simulator call the same planner. Pure.
 *
 * Requests are counted, not logged. The planner therefore replays them in a seeded random order, evenly over the
 * period. Then it passes changed latencies to the policy, and the end of the period.
 */

import { NO_PEERS } from "../cooperation/peer-view.ts";
import type { PeerView } from "../cooperation/peer-view.ts";
import { holdRegions, priced } from "../options/sources.ts";
import type { RegionEstimate } from "../options/sources.ts";
import { createPolicy } from "../policies/registry.ts";
import { keptObjects, type Policy } from "../policy/policy.ts";
import { configureExactly } from "../policy/configure.ts";
import { replay, sampleCounts } from "../policy/replay.ts";
import { seededRandom } from "../random.ts";
import { CacheOptions, sameChunks } from "./cache-options.ts";
import { sameShape } from "./object-shape.ts";
import type { CachedObject, ObjectShape } from "./object-shape.ts";
import { fillMs } from "./prices.ts";
import type { CachePlan, PlanInput, PlannedContents, PlannerOptions, PlannerState } from "./plan.ts";
import { estimateSavings } from "./savings.ts";
import type { Savings, ServedObject } from "./savings.ts";
import { SlotCache } from "./slot-cache.ts";

/** Objects that a policy distinguishes by default. */
export const SLOTS = 32_768;
/** Requests that the planner replays each period: more would hardly improve the estimate. */
const REPLAYED_MAX = 20_000;
/** An object without requests for a day leaves the cache. */
const FORGET_SECONDS = 86_400;
const PERIOD_SECONDS = 60;
/** Factor per period for the popularity of a key that the request monitor no longer lists: Agar's 1 - alpha. */
const FADE = 0.2;

/** A time to the cache stays in force until another one differs by this share: every change values all objects anew. */
const WORTH_NOTICING = 0.05;

/** Plans period after period. */
export class Planner {
  #options: PlannerOptions;
  readonly #cache: SlotCache;
  #beganSeconds: number | undefined;
  #periods: number;
  #cacheOptions: CacheOptions;
  /** Whether `#cacheOptions` was made by other options. */
  #isReconfigured = true;
  /** The estimates in force: none before the first period. */
  #regions: readonly RegionEstimate[];
  #peers: PeerView = NO_PEERS;
  #ledger: PlanInput["ledger"] = new Map();
  /** Undefined before the first plan, and after one that failed. */
  #policy: Policy | undefined;
  /** The policy's state, as the last planner left it. */
  #snapshot: Uint8Array | undefined;
  /** Of the period that the last plan has ended. */
  #regretMs: number | undefined;

  /** @param before what another planner's last plan left. */
  constructor(options: PlannerOptions, before?: PlannerState) {
    this.#options = options;
    this.#beganSeconds = before?.seconds;
    this.#periods = before?.periods ?? 0;
    this.#regions = before?.regions ?? [];
    this.#cacheOptions = new CacheOptions({ ...options, regions: this.#regions });
    const slots = options.slots ?? SLOTS;
    const { functionalPop } = options;
    const changeMs = (object: ObjectShape): number =>
      fillMs(object, this.#options.prices!, functionalPop !== undefined);
    this.#cache = new SlotCache(slots, options.capacityBytes, this.#cacheOptions, options.prices && changeMs);
    for (const { slot, content, d } of before?.slots ?? []) if (slot < slots) this.#cache.restore(slot, content, d);
    if (before?.policy === options.policy) this.#snapshot = before.snapshot;
  }

  /**
   * Takes other options for the next plans. Returns false where they need another planner: the policy, the capacity,
   * the number of slots, and whether there are prices or functional chunks are for life.
   */
  configure(options: PlannerOptions): boolean {
    const before = this.#options;
    const isSame =
      options.policy === before.policy &&
      options.capacityBytes === before.capacityBytes &&
      options.slots === before.slots &&
      options.functionalPop === before.functionalPop &&
      (options.prices === undefined) === (before.prices === undefined);
    if (!isSame) return false;
    this.#options = { ...options, ...heldTimes(before, options) };
    this.#isReconfigured ||= nameOf(this.#options) !== nameOf(before);
    return true;
  }

  /** Keys of what was planned and is not in the cache yet: worth looking up even without requests for them. */
  unsettled(ledger: ReadonlyMap<string, CachedObject>): string[] {
    return keptObjects(this.#cache).flatMap((slot) => {
      const { key, version } = this.#cache.at(slot)!.object;
      const entry = ledger.get(version);
      return entry && entry.done >= entry.stripes && entry.target.length > 0 ? [] : [key];
    });
  }

  /** How many objects compete for the cache. */
  get known(): number {
    return this.#cache.known;
  }

  /** Whether `key` competes for the cache already. */
  knows(key: string): boolean {
    return this.#cache.slotOfKey(key) !== undefined;
  }

  plan(input: PlanInput): CachePlan {
    const seconds = Math.max(this.#beganSeconds ?? 0, input.nowMs / 1_000);
    const { peers = NO_PEERS, isExchange = false } = input;
    const isJoint = peers.requests.size > 0;
    const regions = input.regions.map(({ name, meanMs, sdMs, msPerByte = 0, down, utilization }) => {
      return { name, meanMs, sdMs, msPerByte, down, utilization };
    });
    this.#ledger = input.ledger;
    this.#cache.beginPlan(seconds);
    const isOther = this.#lookAt(this.#beganSeconds === undefined ? regions : this.#regions, peers);
    this.#shrinkToCapacity();
    const policy = (this.#policy ??= this.#createPolicy());
    const counts = this.#settle(input, seconds, policy);
    this.#refresh(isOther, policy);
    if (!isExchange) this.#regretMs = this.#regretOf(counts);
    const before = keptObjects(this.#cache).map((slot) => [slot, this.#cache.countOf(slot)] as const);
    let error: unknown;
    try {
      const from = this.#beganSeconds ?? seconds - PERIOD_SECONDS;
      const random = seededRandom(this.#periods);
      replay(policy, sampleCounts(counts, REPLAYED_MAX), { from, to: seconds }, random);
      if (!isExchange) {
        const isFarther = this.#lookAt(holdRegions(this.#regions, regions), peers);
        if (isFarther || isJoint) policy.onLatency?.(seconds);
        policy.onPeriod?.(seconds);
      }
    } catch (cause) {
      error = cause;
      this.#policy = undefined;
    }
    if (error !== undefined || input.mayChange === false) this.#restore(new Map(before));
    else if (!isExchange) this.#dropWorthless(seconds);
    this.#beganSeconds = seconds;
    this.#periods++;
    const stateOf = (): PlannerState => this.#state(seconds);
    return {
      planned: this.#planned(),
      get state() {
        return stateOf();
      },
      candidates: counts.reduce((sum, count) => sum + Math.min(1, count), 0),
      ...(error === undefined ? {} : { error }),
    };
  }

  #restore(before: ReadonlyMap<number, number>): void {
    const kept = keptObjects(this.#cache);
    for (const slot of kept)
      if (this.#cache.countOf(slot) > (before.get(slot) ?? 0)) this.#keep(slot, before.get(slot) ?? 0);
    for (const [slot, d] of before) if (this.#cache.countOf(slot) !== d) this.#keep(slot, d);
    if (!this.#policy || this.#policy.onChange) return;
    // Another instance takes what the cache holds.
    this.#snapshot = this.#policy.snapshot?.();
    this.#policy = undefined;
  }

  /** Keeps d chunks, other than the policy has decided. */
  #keep(slot: number, d: number): void {
    this.#cache.keep(slot, d);
    this.#policy?.onChange?.(slot);
  }

  /** Sets the latencies by which objects are valued, and returns whether they have changed. */
  #lookAt(regions: readonly RegionEstimate[], peers: PeerView): boolean {
    if (regions === this.#regions && peers === this.#peers && !this.#isReconfigured) return false;
    const cachedOf = (version: string): readonly number[] => this.#ledger.get(version)?.target ?? [];
    this.#regions = regions;
    this.#peers = peers;
    this.#isReconfigured = false;
    const estimates = priced(regions, this.#options.prices?.egressPerByte);
    this.#cacheOptions = new CacheOptions({ ...this.#options, regions: estimates, peers, cachedOf });
    this.#cache.options = this.#cacheOptions;
    return true;
  }

  /** Tells the policy which objects save more or less than at the last plan, because of what is cached or requested. */
  #refresh(isOther: boolean, policy: Policy): void {
    const cache = this.#cache;
    for (let slot = 0; slot < cache.objects; slot++) {
      const content = cache.at(slot);
      if (!content) continue;
      const hasChanged = cache.refresh(slot, this.#ledger.get(content.object.version)?.target);
      if (hasChanged || isOther) policy.onChange?.(slot);
    }
  }

  #createPolicy(): Policy {
    const { policy, policies } = this.#options;
    const snapshot = this.#snapshot;
    // It may take megabytes.
    this.#snapshot = undefined;
    try {
      return createPolicy(policy, this.#cache, {}, snapshot, policies);
    } catch (error) {
      if (snapshot === undefined) throw error;
      // The snapshot has another format: the policy starts from nothing, and the cache stays.
      return createPolicy(policy, this.#cache, {}, undefined, policies);
    }
  }

  /** Gives every requested object a slot and frees the slots of objects that are gone. Returns the requests by slot. */
  #settle(input: PlanInput, seconds: number, policy: Policy): Uint32Array {
    const cache = this.#cache;
    const counts = new Uint32Array(cache.objects);
    for (let slot = 0; slot < cache.objects && !input.isExchange; slot++) {
      cache.popularity[slot]! *= FADE;
      if (cache.at(slot) && seconds - cache.askedSeconds[slot]! > FORGET_SECONDS) this.#assign(slot, undefined, policy);
    }
    for (const [key, object] of input.objects) {
      const slot = cache.slotOfKey(key);
      if (!object && slot !== undefined) this.#assign(slot, undefined, policy);
    }
    const listed = new Set<number>();
    for (const { key, requests, popularity } of input.requests) {
      const slot = this.#slotFor(key, input, seconds, policy);
      if (slot === undefined) continue;
      // Keys of equal content share a slot.
      cache.popularity[slot] = popularity + (listed.has(slot) ? cache.popularity[slot]! : 0);
      listed.add(slot);
      if (requests > 0) cache.askedSeconds[slot] = seconds;
      counts[slot]! += requests;
    }
    // Requests of peers are requests to this cache, too.
    for (const [key, requests] of policy.ownReadsOnly || input.isExchange ? [] : (input.peers?.requests ?? [])) {
      const slot = this.#slotFor(key, input, seconds, policy);
      if (slot !== undefined) counts[slot]! += Math.round(requests);
    }
    return counts;
  }

  #slotFor(key: string, { objects }: PlanInput, seconds: number, policy: Policy): number | undefined {
    const cache = this.#cache;
    const own = cache.slotOfKey(key);
    const object = objects.get(key);
    if (!object) return own;
    const shared = cache.slotOfVersion(object.version);
    if (shared !== undefined) {
      if (own !== undefined && own !== shared) this.#assign(own, undefined, policy);
      // Extra chunks come and go under one version.
      if (!sameShape(cache.at(shared)!.object, object)) cache.renew(shared, object);
      return shared;
    }
    if (own !== undefined && sameShape(cache.at(own)!.object, object)) {
      cache.renew(own, object);
      return own;
    }
    const slot = own ?? cache.freeSlot();
    if (slot !== undefined) this.#assign(slot, object, policy, seconds);
    return slot;
  }

  #assign(slot: number, object: ObjectShape | undefined, policy: Policy, seconds = 0): void {
    this.#cache.assign(slot, object && { object, popularity: 0, askedSeconds: seconds });
    policy.forget?.(slot);
  }

  /** See `Savings.regretMs`. `counts`: the requests of the period by slot. */
  #regretOf(counts: Uint32Array): number | undefined {
    const best = configureExactly(this.#cache, counts).count;
    let requests = 0;
    let lostMs = 0;
    for (const [slot, asked] of counts.entries()) {
      const content = this.#cache.at(slot);
      if (!content || asked === 0) continue;
      const held = this.#ledger.get(content.object.version)?.chunks ?? [];
      requests += asked;
      lostMs += asked * (this.#cache.savedMs(slot, best[slot]!) - this.#cacheOptions.savedMsNear(content, held));
    }
    // Chunks that an earlier plan chose may be better than those of today.
    return requests > 0 ? Math.max(0, lostMs) / requests : undefined;
  }

  /** Frees space after an operator has reduced the capacity. */
  #shrinkToCapacity(): void {
    const cache = this.#cache;
    if (cache.used <= cache.capacity) return;
    const densityOf = (slot: number): number => {
      const { object, popularity } = cache.at(slot)!;
      const d = cache.countOf(slot);
      return (popularity * cache.savedMs(slot, d)) / (d * object.chunkBytes);
    };
    for (const slot of keptObjects(this.#cache).toSorted((a, b) => densityOf(a) - densityOf(b))) {
      if (cache.used <= cache.capacity) return;
      cache.drop(slot);
    }
  }

  /** Keeps no more of any object than pays for its storage, so the cache takes no more than is worth it. */
  #dropWorthless(seconds: number): void {
    const { storagePerByteSecond = 0 } = this.#options.prices ?? {};
    if (storagePerByteSecond === 0) return;
    for (const slot of keptObjects(this.#cache)) {
      const { object, popularity, askedSeconds } = this.#cache.at(slot)!;
      const requests = popularity + this.#cacheOptions.requestsElsewhere(object);
      // The average forgets a seldom read object within minutes: assume that it is read once in its present silence.
      const silence = Math.max(PERIOD_SECONDS, seconds - askedSeconds);
      const perSecond = Math.max(requests / PERIOD_SECONDS, 1 / silence);
      const gainOf = (d: number): number =>
        perSecond * this.#cache.savedMs(slot, d) - storagePerByteSecond * d * object.chunkBytes;
      let best = 0;
      for (let d = 1; d <= this.#cache.countOf(slot); d++) if (gainOf(d) > gainOf(best)) best = d;
      if (best < this.#cache.countOf(slot)) this.#keep(slot, best);
    }
  }

  /**
   * Returns what each idea saves while the cache holds `chunksOf` a version, by the latencies and peers of the last
   * plan, and the regret of the period that it ended. `egressUsdPerGb`: the price of a GB from each region; others are
   * free.
   */
  savings(
    chunksOf: (version: string) => readonly number[],
    egressUsdPerGb: ReadonlyMap<string, number> = new Map(),
  ): Savings | undefined {
    const served: ServedObject[] = [];
    for (let slot = 0; slot < this.#cache.objects; slot++) {
      const content = this.#cache.at(slot);
      if (content) served.push({ ...content, chunks: chunksOf(content.object.version) });
    }
    const view = { ...this.#options, regions: this.#regions, peers: this.#peers, egressUsdPerGb };
    const savings = estimateSavings(served, view);
    return savings && { ...savings, ...(this.#regretMs !== undefined && { regretMs: this.#regretMs }) };
  }

  #planned(): PlannedContents[] {
    const options = this.#cacheOptions;
    return keptObjects(this.#cache).map((slot) => {
      const content = this.#cache.at(slot)!;
      const { object, popularity } = content;
      const entry = this.#ledger.get(object.version);
      const chunks = options.chunksFor(content, this.#cache.countOf(slot));
      const settled = entry && entry.done >= entry.stripes ? entry.chunks : [];
      if (sameChunks(chunks, settled)) return { object, chunks, worth: 0 };
      const saved = options.savedMsWith(content, chunks) - options.savedMsNear(content, settled);
      return { object, chunks, worth: popularity * Math.max(0, saved) };
    });
  }

  #state(seconds: number): PlannerState {
    const slots = Array.from({ length: this.#cache.objects }, (_, slot) => slot).flatMap((slot) => {
      const content = this.#cache.at(slot);
      return content ? [{ slot, content, d: this.#cache.countOf(slot) }] : [];
    });
    return {
      policy: this.#options.policy,
      periods: this.#periods,
      seconds,
      regions: this.#regions,
      slots,
      snapshot: this.#policy ? this.#policy.snapshot?.() : this.#snapshot,
    };
  }
}

/** Returns the times to the cache that stay in force. */
function heldTimes(before: PlannerOptions, now: PlannerOptions): Pick<PlannerOptions, "cacheMs" | "firstRead"> {
  const isHeld = (old: number, ms: number): boolean => Math.abs(ms - old) <= WORTH_NOTICING * old;
  const first = before.firstRead;
  return {
    cacheMs: isHeld(before.cacheMs, now.cacheMs) ? before.cacheMs : now.cacheMs,
    firstRead: first && now.firstRead && isHeld(first.ms, now.firstRead.ms) ? first : now.firstRead,
  };
}

/** Returns what of the options decides what chunks save. */
function nameOf({ cacheMs, firstRead, delta, recovered, prices }: PlannerOptions): string {
  return JSON.stringify([cacheMs, firstRead, delta, recovered, [...(prices?.egressPerByte ?? [])]]);
}
