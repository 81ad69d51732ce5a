/**
 * What a client knows of objects and buckets: plans by key, the latest regions, and the PoPs' telemetry tokens.
 */
import { DELTA_DEFAULT, type Clock, type Manifest, type PlanRegion } from "@agarose/core";
import type { ClientConfig } from "../../common/config.ts";
import type { ObjectStore } from "../object-store.ts";
import { allowedRegions } from "../sources/allowed-regions.ts";
import { refuseOlder, type Bundle, type FullPlan } from "./bundle-request.ts";
import { PlanCache } from "./plan-cache.ts";
import { discard } from "./pop-call.ts";

/** A signature in its last seconds could expire on the way. */
const EXPIRY_MARGIN_MS = 20_000;

/** What a `PlanStore` uses. */
export interface PlanStoreOptions {
  readonly config: Pick<ClientConfig, "regions" | "delta">;
  readonly clock: Clock;
  /** Also keeps every public plan. */
  readonly store?: ObjectStore | undefined;
}

/** Plans in memory, and in the object store where there is one. */
export class PlanStore extends PlanCache {
  readonly #options: PlanStoreOptions;
  /** By PoP. */
  readonly #telemetryTokens = new Map<string, string>();
  #regions: readonly PlanRegion[];

  constructor(options: PlanStoreOptions) {
    super(options.clock);
    this.#options = options;
    this.#regions = allowedRegions([], options.config.regions);
  }

  /** The public buckets of the latest plan, or of the configuration before the first plan. */
  get regions(): readonly PlanRegion[] {
    return this.#regions;
  }

  /** The newest plan of `key` from memory, or from the store, which outlives the client. */
  async newest(key: string): Promise<FullPlan | undefined> {
    return this.latest(key) ?? this.#options.store?.plan(key);
  }

  /** The token that a PoP's latest plan brought for telemetry. */
  telemetryToken(pop: string): string | undefined {
    return this.#telemetryTokens.get(pop);
  }

  /**
   * Takes in a plan of a PoP, and returns it with what the configuration says of regions and delta. Throws
   * MANIFEST_STALE where another read has learned a newer generation meanwhile.
   */
  learn(key: string, received: FullPlan): FullPlan {
    // Only a majority of the buckets can take a key back.
    if (received.pop) refuseOlder(received.manifest, this.latest(key));
    const { clock, config, store } = this.#options;
    const regions = allowedRegions(received.regions, config.regions);
    const seconds = Math.min(...regions.map(({ signed }) => signed?.seconds ?? Number.POSITIVE_INFINITY));
    const signedUntilMs = clock.now() + 1000 * seconds - EXPIRY_MARGIN_MS;
    const plan = { ...received, delta: config.delta ?? received.delta, regions, signedUntilMs };
    // A private bucket is of no use without a PoP, and its signatures are for this object.
    this.#regions = regions.filter((region) => !region.signed);
    if (plan.telemetry) this.#telemetryTokens.set(plan.pop, plan.telemetry);
    // Every reader of a private object must prove its access: other pages share this client.
    if (plan.private) return plan;
    this.set(key, plan);
    store?.learn(key, plan);
    return plan;
  }

  /** `learn` of the plan that a bundle brought. Discards the bundle when that throws. */
  learnBundle(key: string, bundle: Bundle): Bundle {
    try {
      const learned = this.learn(key, bundle.lasting ?? bundle.plan);
      return { ...bundle, plan: { ...learned, cached: bundle.plan.cached } };
    } catch (error) {
      discard(bundle);
      throw error;
    }
  }

  /** Makes a plan from a bucket's manifest, without any cached chunk, and takes it in. */
  learnManifest(key: string, manifest: Manifest): FullPlan {
    const { version } = manifest;
    const regions = this.#regions;
    return this.learn(key, { pop: "", epoch: 0, version, manifest, cached: [], regions, delta: DELTA_DEFAULT });
  }
}
