/**
 * Keeps the stripes of the objects that were read in Cache Storage, within a bound of bytes: least recently used ones
 * go first. What it gives back is worth what a source's answer is: it is parsed, trusted by the configuration in force,
 * and verified. Anything else is dropped, so a damaged entry is as good as none.
 *
 * It is not in the worker's drop-in files but in those named `offline`.
 */
import { AgaroseError, systemSha256 } from "@agarose/core";
import { HAS_MESSAGES } from "@agarose/core/features";
import {
  checkManifest,
  checkPage,
  CHUNKS_MAX,
  encodeKey,
  fromBase64,
  isCount,
  isPlanRegion,
  recordJson,
  stripeCount,
  stripeShape,
  type Manifest,
  type PlanRegion,
} from "@agarose/core/format";
import { checkHash, StripeHashes, type ReadTarget, type StripeData } from "@agarose/core/read";
import type { FullPlan, ManifestChecks } from "../client/plans/bundle-request.ts";
import type { StripeSpan } from "../client/stripe-span.ts";
import { clientTrust, type ClientConfig, type Endpoint } from "../common/config.ts";
import type { ObjectStore } from "../client/object-store.ts";
import { OFFLINE_CACHE_NAME } from "../common/cache-names.ts";
import { OfflineEntries } from "./offline-entries.ts";
import { allowedRegions } from "../client/sources/allowed-regions.ts";

/** Dependencies of a store. */
export interface OfflineOptions extends ManifestChecks {
  /** As configured: what was kept under an older configuration may name others. */
  readonly regions: readonly Endpoint[];
  readonly pops: readonly Endpoint[];
  /** The app: entries of another one in the same cache are neither seen nor touched. */
  readonly owner?: string;
  /** Bytes of stripes and plans at most. */
  readonly bytes: number;
  /** Opened when it is first needed; where that fails, nothing is kept. */
  readonly cache: () => Promise<Cache>;
}

interface KeptPlan extends Pick<FullPlan, "delta" | "regions"> {
  readonly manifest: { readonly inline?: string };
  /** URLs of the PoPs and regions of the configuration under which it was learned. */
  readonly deployment: readonly string[];
}

/** The part of ServiceWorkerGlobalScope that tells apps of one origin apart. */
interface Registered {
  readonly registration?: { readonly scope: string };
}

/** The store that a configuration asks for, if any. Throws CONFIG_INVALID. */
export function offlineStore(config: ClientConfig): OfflineStore | undefined {
  const { offline, prefix, pops, regions } = config;
  if (offline === undefined) return undefined;
  const bytes = (offline as { bytes?: number } | null)?.bytes;
  if (bytes === undefined || !Number.isSafeInteger(bytes) || bytes < 1) {
    throw new AgaroseError(
      "CONFIG_INVALID",
      HAS_MESSAGES && `offline is ${JSON.stringify(offline)}: {"bytes": n} with n of 1 or more is expected`,
      { field: "offline" },
    );
  }
  const { registration } = globalThis as Registered;
  return new OfflineStore({
    pops,
    regions,
    bytes,
    owner: `${encodeURIComponent(registration?.scope ?? "")}/${encodeURIComponent(prefix)}/`,
    cache: () => caches.open(OFFLINE_CACHE_NAME),
    sha256: systemSha256,
    trust: clientTrust(config),
  });
}

/** Keeps stripes and plans of objects in Cache Storage, and reads objects from there. Verifies all that it reads. */
export class OfflineStore implements ObjectStore {
  readonly #regions: readonly Endpoint[];
  readonly #deployment: readonly string[];
  readonly #checks: ManifestChecks;
  readonly #entries: OfflineEntries;

  constructor({ pops, regions, bytes, owner, cache, sha256, trust }: OfflineOptions) {
    this.#regions = regions;
    this.#deployment = [...pops, ...regions].map(({ url }) => url);
    this.#checks = { sha256, trust };
    this.#entries = new OfflineEntries(cache, bytes, owner);
  }

  async plan(key: string): Promise<FullPlan | undefined> {
    const bytes = await this.#entries.get(planName(key));
    if (!bytes) return undefined;
    try {
      return await this.#parse(key, bytes);
    } catch {
      // Damaged, of another deployment, or no longer trusted: its stripes are of no more use than the plan itself.
      await this.purge((purged) => purged === key);
      return undefined;
    }
  }

  async #parse(key: string, bytes: Uint8Array): Promise<FullPlan> {
    const { manifest: json, regions, delta, deployment } = JSON.parse(new TextDecoder().decode(bytes)) as KeptPlan;
    const kept = { ...json, ...(json.inline !== undefined && { inline: fromBase64(json.inline) }) };
    const isOurs = deployment.some((url) => this.#deployment.includes(url));
    if (!isOurs || !isCount(delta, CHUNKS_MAX) || !regions.every(isPlanRegion)) throw new Error("unsound");
    const manifest = await checkManifest(kept, { ...this.#checks, key });
    const { version } = manifest;
    return { pop: "", epoch: 0, version, manifest, delta, regions: allowedRegions(regions, this.#regions), cached: [] };
  }

  learn(key: string, plan: FullPlan): void {
    const current = stripePrefix(plan.manifest);
    void this.#entries.deleteWhere((name) => name.startsWith(keyPrefix(key)) && !name.startsWith(current));
    // When no source answers, what a plan says about the network is old. What it says about the object still holds.
    const { manifest, delta } = plan;
    const regions: PlanRegion[] = plan.regions.filter(({ signed }) => !signed);
    const kept = { manifest: recordJson(manifest), delta, regions, deployment: this.#deployment };
    void this.#entries.put(planName(key), new TextEncoder().encode(JSON.stringify(kept)));
  }

  holds(manifest: Manifest, { from, to }: StripeSpan): boolean {
    const end = Math.min(to + 1, stripeCount(manifest));
    for (let stripe = from; stripe < end; stripe++) if (!this.#entries.has(stripeName(manifest, stripe))) return false;
    return true;
  }

  sharing(manifest: Manifest): Required<Pick<ReadTarget, "share" | "sharePage">> {
    const hashes = new StripeHashes(manifest, (page) => this.#page(manifest, page));
    return {
      share: async (stripe, read, signal) => {
        // Without the page of its hashes, a stripe is read like one that is not kept.
        const known = await hashes.of(stripe, signal).catch(() => undefined);
        const kept = known && (await this.#kept(manifest, stripe, known));
        if (kept) return { data: kept, made: () => [], decoding: { ms: 0, shards: 0 } };
        const fresh = await read(signal);
        void this.#entries.put(stripeName(manifest, stripe), joined(fresh));
        return fresh;
      },
      sharePage: (page, read) =>
        this.#page(manifest, page).catch(async () => {
          const fresh = await read();
          void this.#entries.put(pageName(manifest, page), fresh);
          return fresh;
        }),
    };
  }

  async purge(isPurged: (key: string) => boolean): Promise<void> {
    await this.#entries.deleteWhere((name) => isPurged(keyOf(name)));
  }

  /** A page of hashes that is kept and sound. Rejects for any other. */
  async #page(manifest: Manifest, page: number): Promise<Uint8Array> {
    const bytes = (await this.#entries.get(pageName(manifest, page))) ?? new Uint8Array();
    await checkPage(manifest, page, bytes, this.#checks.sha256);
    return bytes;
  }

  /** The k data shards of a stripe that is kept and has these hashes. */
  async #kept(manifest: Manifest, index: number, hashes: Uint8Array): Promise<Uint8Array[] | undefined> {
    const name = stripeName(manifest, index);
    const bytes = await this.#entries.get(name);
    if (!bytes) return undefined;
    const stripe = stripeShape(manifest, index);
    const { shardBytes } = stripe;
    const data = Array.from({ length: manifest.k }, (_, i) => bytes.subarray(i * shardBytes, (i + 1) * shardBytes));
    try {
      const hashed = { manifest, stripe, hashes };
      await Promise.all(data.map((shard, chunk) => checkHash(hashed, chunk, shard, this.#checks.sha256)));
      return data;
    } catch {
      await this.#entries.deleteWhere((other) => other === name);
      return undefined;
    }
  }
}

// Names are paths below the worker's origin: `stripes/<encoded key>@<version>/<stripe>` or `/page<page>`, and
// `plans/<encoded key>@`. No encoded key has an `@`.
const planName = (key: string): string => `plans/${encodeKey(key)}@`;
const keyPrefix = (key: string): string => `stripes/${encodeKey(key)}@`;
const stripePrefix = ({ key, version }: Manifest): string => `${keyPrefix(key)}${version}/`;
const stripeName = (manifest: Manifest, stripe: number): string => `${stripePrefix(manifest)}${stripe}`;
const pageName = (manifest: Manifest, page: number): string => `${stripePrefix(manifest)}page${page}`;
const keyOf = (name: string): string => decodeURIComponent(name.slice(name.indexOf("/") + 1, name.indexOf("@")));

function joined({ data }: StripeData): Uint8Array {
  const [first] = data;
  const whole = new Uint8Array(data.length * (first?.length ?? 0));
  for (const [chunk, shard] of data.entries()) whole.set(shard, chunk * shard.length);
  return whole;
}
