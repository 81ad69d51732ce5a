/** A client's knowledge of objects and buckets: plans by key and the latest regions. */
import type { Clock } from "@agarose/core";
import { HAS_STORE } from "@agarose/core/features";
import type { Manifest, PlanRegion } from "@agarose/core/format";
import { ByteLru, DELTA_DEFAULT } from "@agarose/core/read";
import type { ClientConfig } from "../../common/config.ts";
import type { ObjectStore } from "../object-store.ts";
import { allowedRegions } from "../sources/allowed-regions.ts";
import { refuseOlder, type Bundle, type FullPlan } from "./bundle-request.ts";
import { discard } from "./pop-call.ts";

/** How long a plan may be used after it arrived, in milliseconds. */
export const PLAN_TTL_MS = 60_000;
/**
 * Characters of all plans, and bytes of inline objects: 4 MiB hold the plans of 1,400 objects of 4 MiB, of 30 GB in
 * large ones, or of 300 inline objects of 12 kB.
 */
export const PLANS_BYTES_MAX = 4 * 1024 * 1024;
/** A signature in its last seconds could expire on the way. */
const EXPIRY_MARGIN_MS = 20_000;

/** Dependencies of a `PlanStore`. */
export interface PlanStoreOptions {
  readonly config: Pick<ClientConfig, "regions" | "delta">;
  readonly clock: Clock;
  /** Also keeps every public plan. */
  readonly store?: ObjectStore | undefined;
}

interface Entry {
  readonly plan: FullPlan;
  readonly atMs: number;
  /** Of its JSON, a byte a character, and of its content if that is inline. */
  readonly bytes: number;
}

/**
 * Plans in memory, the least recently used evicted first, and in the object store where there is one. With a known
 * plan, a read asks the edge and the buckets at once.
 */
export class PlanStore {
  readonly #options: PlanStoreOptions;
  readonly #plans = new ByteLru<Entry>(PLANS_BYTES_MAX);
  /** The public buckets of the latest plan, or of the configuration before the first plan. */
  regions: readonly PlanRegion[];
  /** How often plans were purged. A plan that was requested before a purge must not be remembered after it. */
  purges = 0;

  constructor(options: PlanStoreOptions) {
    this.#options = options;
    this.regions = allowedRegions([], options.config.regions);
  }

  /** The plan of `key` if it is younger than PLAN_TTL_MS. */
  get(key: string): FullPlan | undefined {
    const entry = this.#plans.get(key);
    return entry && this.#options.clock.now() - entry.atMs < PLAN_TTL_MS ? entry.plan : undefined;
  }

  /** The newest plan of `key`, however old it is: reads never go back behind its generation. */
  latest(key: string): FullPlan | undefined {
    return this.#plans.get(key)?.plan;
  }

  delete(key: string): void {
    this.#plans.delete(key);
  }

  /** Drops the plans of all keys for which `isPurged`. */
  purge(isPurged: (key: string) => boolean): void {
    this.purges++;
    for (const key of this.#plans.names()) if (isPurged(key)) this.#plans.delete(key);
  }

  /**
   * Takes in a plan of a PoP, and returns it with what the configuration says of regions and delta. Throws
   * MANIFEST_STALE where another read has learned a newer generation in the meantime.
   *
   * @param purges those before it was requested.
   */
  learn(key: string, received: FullPlan, purges: number): FullPlan {
    // Only a majority of the buckets can take a key back.
    if (received.pop) refuseOlder(received.manifest, this.latest(key));
    const { clock, config } = this.#options;
    // The plan of an inline object may name none.
    const regions = allowedRegions(received.regions[0] ? received.regions : this.regions, config.regions);
    const seconds = Math.min(...regions.map(({ signed }) => signed?.seconds ?? Number.POSITIVE_INFINITY));
    const signedUntilMs = clock.now() + 1000 * seconds - EXPIRY_MARGIN_MS;
    const plan = { ...received, delta: config.delta ?? received.delta, regions, signedUntilMs };
    // A private bucket is of no use without a PoP, and its signatures are for this object.
    this.regions = regions.filter((region) => !region.signed);
    // Every reader of a private object must prove its access: other pages share this client.
    if (plan.private) {
      // Its PoP says so. What was kept while it was public goes, too.
      if (plan.pop) {
        this.delete(key);
        if (HAS_STORE) void this.#options.store?.purge((purged) => purged === key);
      }
      return plan;
    }
    if (purges !== this.purges) return plan;
    const { inline = [] } = plan.manifest;
    const json = JSON.stringify(plan, (_name, value: unknown) => (value === inline ? 0 : value));
    const bytes = json.length + inline.length;
    this.#plans.set(key, { plan, atMs: clock.now(), bytes });
    if (HAS_STORE) this.#options.store?.learn(key, plan);
    return plan;
  }

  /** `learn` of the plan that a bundle brought. Discards the bundle when that throws. */
  learnBundle(key: string, bundle: Bundle, purges: number): Bundle {
    try {
      const { plan, cached } = bundle;
      return { ...bundle, plan: { ...this.learn(key, { ...plan, cached }, purges), cached: plan.cached } };
    } catch (error) {
      discard(bundle);
      throw error;
    }
  }

  /**
   * Makes a plan from a bucket's manifest, without any cached chunk, and takes it in. Set `isPrivate` for a read with
   * credentials: no PoP has said whether others may read the object without.
   *
   * @param purges those before it was requested.
   */
  learnManifest(key: string, manifest: Manifest, purges: number, isPrivate = false): FullPlan {
    const { version } = manifest;
    const own = { pop: "", epoch: 0, cached: [], delta: DELTA_DEFAULT, ...(isPrivate && { private: true }) };
    return this.learn(key, { ...own, version, manifest, regions: this.regions }, purges);
  }
}
