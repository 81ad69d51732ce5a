/**
 * Keeps the stripes of the objects that were read in Cache Storage, within a bound of bytes: least recently used ones
 * go first. What it gives back is verified once more, so a damaged entry is as good as none.
 *
 * It is not in the worker's drop-in files but in those named `offline`.
 */
import {
  AgaroseError,
  HAS_MESSAGES,
  checkHash,
  encodeKey,
  stripeCount,
  stripeShape,
  systemSha256,
  type Manifest,
  type Sha256,
  type StripeData,
  type StripeSharing,
} from "@agarose/core";
import type { FullPlan } from "../client/plans/bundle-request.ts";
import type { StripeSpan } from "../client/stripe-span.ts";
import type { ClientConfig, Endpoint } from "../common/config.ts";
import type { ObjectStore } from "../client/object-store.ts";
import { OFFLINE_CACHE_NAME } from "../common/cache-names.ts";
import { OfflineEntries } from "./offline-entries.ts";
import { allowedRegions } from "../client/sources/allowed-regions.ts";

/** What a store depends on. */
export interface OfflineOptions {
  /** As configured: what was kept under an older configuration may name others. */
  readonly regions: readonly Endpoint[];
  /** Bytes of stripes and plans at most. */
  readonly bytes: number;
  /** Opened when it is first needed; where that fails, nothing is kept. */
  readonly cache: () => Promise<Cache>;
  readonly sha256: Sha256;
}

/** The store that a configuration asks for, if any. Throws CONFIG_INVALID. */
export function offlineStore({ offline, regions }: ClientConfig): OfflineStore | undefined {
  if (offline === undefined) return undefined;
  const bytes = (offline as { bytes?: number } | null)?.bytes;
  if (bytes === undefined || !Number.isSafeInteger(bytes) || bytes < 1) {
    throw new AgaroseError(
      "CONFIG_INVALID",
      HAS_MESSAGES && `offline is ${JSON.stringify(offline)}: {"bytes": n} with n of 1 or more is expected`,
      { field: "offline" },
    );
  }
  return new OfflineStore({ regions, bytes, cache: () => caches.open(OFFLINE_CACHE_NAME), sha256: systemSha256 });
}

/** Keeps stripes and plans of objects in Cache Storage, and reads objects from there. Verifies all that it reads. */
export class OfflineStore implements ObjectStore {
  readonly #regions: readonly Endpoint[];
  readonly #sha256: Sha256;
  readonly #entries: OfflineEntries;
  readonly #reads = new Map<string, number>();

  constructor({ regions, bytes, cache, sha256 }: OfflineOptions) {
    this.#regions = regions;
    this.#sha256 = sha256;
    this.#entries = new OfflineEntries(cache, bytes);
  }

  async plan(key: string): Promise<FullPlan | undefined> {
    const bytes = await this.#entries.get(planName(key));
    if (!bytes) return undefined;
    const plan = JSON.parse(new TextDecoder().decode(bytes)) as FullPlan;
    return { ...plan, regions: allowedRegions(plan.regions, this.#regions) };
  }

  learn(key: string, plan: FullPlan): void {
    const current = stripePrefix(plan.manifest);
    void this.#entries.deleteWhere((name) => name.startsWith(keyPrefix(key)) && !name.startsWith(current));
    // When no source answers, what a plan says about the network is old. What it says about the object still holds.
    const { pop, epoch, version, manifest, delta } = plan;
    const regions = plan.regions.filter(({ signed }) => !signed);
    const kept: FullPlan = { pop, epoch, version, manifest, delta, regions, cached: [] };
    void this.#entries.put(planName(key), new TextEncoder().encode(JSON.stringify(kept)));
  }

  holds(manifest: Manifest, { from, to }: StripeSpan): boolean {
    const end = Math.min(to + 1, stripeCount(manifest));
    for (let stripe = from; stripe < end; stripe++) if (!this.#entries.has(stripeName(manifest, stripe))) return false;
    return true;
  }

  countRead(key: string): void {
    this.#reads.set(key, (this.#reads.get(key) ?? 0) + 1);
  }

  takeReads(): Readonly<Record<string, number>> | undefined {
    const reads = Object.fromEntries(this.#reads);
    const isAny = this.#reads.size > 0;
    this.#reads.clear();
    return isAny ? reads : undefined;
  }

  sharing(manifest: Manifest): StripeSharing {
    return async (stripe, read, signal) => {
      const kept = await this.#kept(manifest, stripe);
      if (kept) return { data: kept, made: () => [], decoding: { ms: 0, shards: 0 } };
      const fresh = await read(signal);
      void this.#entries.put(stripeName(manifest, stripe), joined(fresh));
      return fresh;
    };
  }

  async purge(isPurged: (key: string) => boolean): Promise<void> {
    await this.#entries.deleteWhere((name) => isPurged(keyOf(name)));
  }

  /** The k data shards of a stripe that is kept and sound. */
  async #kept(manifest: Manifest, index: number): Promise<Uint8Array[] | undefined> {
    const name = stripeName(manifest, index);
    const bytes = await this.#entries.get(name);
    if (!bytes) return undefined;
    const stripe = stripeShape(manifest, index);
    const { shardBytes } = stripe;
    const data = Array.from({ length: manifest.k }, (_, i) => bytes.subarray(i * shardBytes, (i + 1) * shardBytes));
    try {
      await Promise.all(data.map((shard, chunk) => checkHash(manifest, stripe, chunk, shard, this.#sha256)));
      return data;
    } catch {
      await this.#entries.deleteWhere((other) => other === name);
      return undefined;
    }
  }
}

// Names are paths below the worker's origin: `stripes/<encoded key>@<version>/<stripe>` and `plans/<encoded key>@`. No
// encoded key has an `@`.
const planName = (key: string): string => `plans/${encodeKey(key)}@`;
const keyPrefix = (key: string): string => `stripes/${encodeKey(key)}@`;
const stripePrefix = ({ key, version }: Manifest): string => `${keyPrefix(key)}${version}/`;
const stripeName = (manifest: Manifest, stripe: number): string => `${stripePrefix(manifest)}${stripe}`;
const keyOf = (name: string): string => decodeURIComponent(name.slice(name.indexOf("/") + 1, name.indexOf("@")));

function joined({ data }: StripeData): Uint8Array {
  const [first] = data;
  const whole = new Uint8Array(data.length * (first?.length ?? 0));
  for (const [chunk, shard] of data.entries()) whole.set(shard, chunk * shard.length);
  return whole;
}
