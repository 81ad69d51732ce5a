/**
 * Verified chunks of one stripe for the chunk cache. A chunk comes from the stored value, else from what a read has
 * just fetched, else from a source that has it (its region or a peer's cache), else it is rebuilt from any k others
 * (Liu et al., V-B). Every chunk is verified. `fill-sources.ts` orders the sources.
 *
 * A functional chunk (Sprout, section III) is computed from any k verified chunks. No manifest has its hash, so a
 * stored one is computed again and compared.
 */
import { AgaroseError, toAgaroseError, type Clock, type Codec, type Sha256 } from "@agarose/core";
import { isFunctional, stripeShape, type Frame } from "@agarose/core/format";
import { checkHash, hashesFrom, planStripe, readStripe, type BlockMemory } from "@agarose/core/read";
import type { ChunkSource } from "@agarose/core/sources";
import type { RegionEstimate } from "@agarose/solver/planner";
import { fillSources, type FillSourceOptions } from "./fill-sources.ts";
import type { PeriodBooks, PeriodContext } from "./period-context.ts";

interface StripeFillOptions extends FillSourceOptions {
  readonly stripe: number;
  readonly wanted: readonly number[];
  /** The cached frames of the stripe, unverified. */
  readonly stored: readonly Frame[];
  /** Resolves to frames that reads have just fetched, unverified. Default: none. */
  readonly fetched?: (() => Promise<readonly Frame[]>) | undefined;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly codec: () => Promise<Codec>;
  /** Keeps pages of hashes for the next stripes. Default: each stripe reads its own. */
  readonly memory?: BlockMemory;
  /** Called with the bytes of each answer of a region, also of those that are of no use. */
  readonly onRegionBytes?: ((bytes: number) => void) | undefined;
  /** Called after each request to a peer: whether it delivered the right bytes. */
  readonly onPeer?: ((name: string, isGood: boolean) => void) | undefined;
}

/** A fill that has begun, with the hashes of its stripe. */
type Filling = StripeFillOptions & { readonly hashes: Promise<Uint8Array> };

/** A filled stripe. */
export interface StripeFill {
  /** Exactly the wanted chunks. */
  readonly chunks: ReadonlyMap<number, Uint8Array>;
  /** Whether the cache has exactly these chunks already. */
  readonly unchanged: boolean;
  /** Chunks that a region stores but did not deliver. */
  readonly reconstructed: number;
  /** Bytes that regions and peers delivered for it. */
  readonly fetchedBytes: number;
  /** Bytes of `chunks` that the cache does not have yet. */
  readonly filledBytes: number;
}

const CHUNK_TIMEOUT_MS = 15_000;
const STRIPE_TIMEOUT_MS = 30_000;

/** The shared parts of a period's fills, and the shards of a stripe that reads have just fetched. */
export function fillParts(
  { settings, cache, system }: Pick<PeriodContext, "settings" | "cache" | "system">,
  { egressBudget }: Pick<PeriodBooks, "egressBudget">,
  estimates: readonly RegionEstimate[],
  { manifest: { version, k }, stripe }: Pick<StripeFillOptions, "manifest" | "stripe">,
): Omit<StripeFillOptions, "manifest" | "stripe" | "wanted" | "stored"> {
  return {
    ...system,
    regions: settings.regions,
    estimates: new Map(estimates.map((estimate) => [estimate.name, estimate])),
    fetched() {
      system.budget.spend();
      return cache.fetched.find(version, stripe, k, cache.kv);
    },
    onRegionBytes: (bytes) => egressBudget.spend(bytes),
    onPeer: cache.peers?.note.bind(cache.peers),
  };
}

/** Resolves to the verified chunks. Rejects with NOT_ENOUGH_CHUNKS or READ_TIMEOUT when too few regions deliver. */
export async function fillStripe(given: StripeFillOptions): Promise<StripeFill> {
  const { manifest, stored, wanted, fetched = async () => [], memory } = given;
  let fetchedBytes = 0;
  const sources = fillSources(given).map((source) =>
    counting(source, (bytes) => {
      fetchedBytes += bytes;
      if (source.kind === "region") given.onRegionBytes?.(bytes);
    }),
  );
  const context = { ...given, random: () => 0, ...(memory && { memory }) };
  const hashes = hashesFrom({ manifest, sources }, context).of(given.stripe, new AbortController().signal);
  // The first chunk awaits it. Until then it must not count as unhandled.
  hashes.catch(() => {});
  const options: Filling = { ...given, hashes };
  const atHand = new Map<number, Uint8Array>();
  const take = async (frames: readonly Frame[]): Promise<void> => {
    for (const { chunk, payload } of frames) if (await isChunk(options, chunk, payload)) atHand.set(chunk, payload);
  };
  await take(stored);
  if (wanted.some((chunk) => !atHand.has(chunk))) await take(await fetched());
  const found = new Map([...atHand].filter(([chunk]) => wanted.includes(chunk)));
  await Promise.all(
    wanted.map(async (chunk) => {
      // k chunks are at hand: computing this one takes no request. What has no hash is computed in any case.
      if (found.has(chunk) || atHand.size >= manifest.k || isFunctional(manifest, chunk)) return;
      const bytes = await fetchChunk(options, sources, chunk);
      if (bytes) found.set(chunk, bytes);
    }),
  );
  const missing = wanted.filter((chunk) => !found.has(chunk));
  const known = new Map([...atHand, ...found]);
  for (const [chunk, bytes] of await reconstruct(options, sources, known, missing)) found.set(chunk, bytes);
  const unchanged = stored.length === wanted.length && stored.every((frame) => holds(found.get(frame.chunk), frame));
  const isComputed = (chunk: number): boolean => isFunctional(manifest, chunk) || atHand.size >= manifest.k;
  const reconstructed = missing.filter((chunk) => !isComputed(chunk)).length;
  const isNew = ([chunk, bytes]: [number, Uint8Array]): boolean =>
    !stored.some((frame) => frame.chunk === chunk && holds(bytes, frame));
  const filledBytes = [...found].filter(isNew).reduce((sum, [, bytes]) => sum + bytes.length, 0);
  return { chunks: found, unchanged, reconstructed, fetchedBytes, filledBytes };
}

/** Returns a source that says how many bytes each request has brought. */
function counting(source: ChunkSource, onBytes: (bytes: number) => void): ChunkSource {
  return {
    id: source.id,
    kind: source.kind,
    latency: source.latency,
    get progress() {
      return source.progress ?? 0;
    },
    has: (stripe, chunk) => source.has(stripe, chunk),
    async fetch(request) {
      const bytes = await source.fetch(request);
      onBytes(bytes.length);
      return bytes;
    },
  };
}

function holds(bytes: Uint8Array | undefined, { payload }: Frame): boolean {
  return bytes?.length === payload.length && bytes.every((byte, i) => byte === payload[i]);
}

/** Resolves to the chunk from the first source that delivers it, or to undefined when none does. */
async function fetchChunk(
  options: Filling,
  sources: readonly ChunkSource[],
  chunk: number,
): Promise<Uint8Array | undefined> {
  const { estimates, stripe } = options;
  for (const source of sources) {
    if (!source.has(stripe, chunk) || (source.kind === "region" && estimates.get(source.id)?.down)) continue;
    const bytes = await delivered(options, source, chunk);
    if (bytes) return bytes;
  }
  return undefined;
}

async function delivered(options: Filling, source: ChunkSource, chunk: number): Promise<Uint8Array | undefined> {
  const { manifest, stripe, clock, onPeer = () => {} } = options;
  const abort = new AbortController();
  const cancel = clock.after(CHUNK_TIMEOUT_MS, () => abort.abort());
  try {
    const bytes = await source.fetch({ stripe: stripeShape(manifest, stripe), chunk, signal: abort.signal });
    const isGood = await isChunk(options, chunk, bytes);
    if (source.kind === "peer") onPeer(source.id, isGood);
    return isGood ? bytes : undefined;
  } catch (error) {
    // A peer that no longer holds the chunk has not failed.
    if (source.kind === "peer" && toAgaroseError(error).code !== "CHUNK_MISSING") onPeer(source.id, false);
    return undefined;
  } finally {
    cancel();
  }
}

async function reconstruct(
  options: Filling,
  sources: readonly ChunkSource[],
  known: ReadonlyMap<number, Uint8Array>,
  wanted: readonly number[],
): Promise<[number, Uint8Array][]> {
  if (wanted.length === 0) return [];
  const { manifest, estimates, clock, sha256 } = options;
  const stripe = stripeShape(manifest, options.stripe);
  const last = new Set([...estimates.values()].filter(({ down }) => down).map(({ name }) => name));
  for (const chunk of wanted) if (!isFunctional(manifest, chunk)) last.add(manifest.placement[chunk]!);
  const health = { isAvoided: (id: string) => last.has(id) };
  const shards = await readStripe({
    manifest,
    stripe,
    hashes: options.hashes,
    candidates: planStripe(manifest, stripe.index, [inMemory(known), ...sources], { health, random: () => 0 }),
    delta: 0,
    hedge: false,
    timeoutMs: STRIPE_TIMEOUT_MS,
    codec: options.codec,
    clock,
    sha256,
    signal: new AbortController().signal,
    onRequest: () => {},
  });
  const codec = await options.codec();
  const rebuilt = codec.reconstruct(
    manifest.k,
    [...shards].map(([index, bytes]) => ({ index, bytes })),
    wanted,
  );
  for (const [i, chunk] of wanted.entries()) {
    // A functional chunk has no hash. It was made of k verified chunks.
    if (isFunctional(manifest, chunk) || (await isChunk(options, chunk, rebuilt[i]!))) continue;
    throw new AgaroseError(
      "CHUNK_CORRUPT",
      `chunk ${chunk} of stripe ${stripe.index} of ${JSON.stringify(manifest.key)} rebuilt from ${manifest.k} verified ` +
        `chunks has another SHA-256 than the manifest: run \`agarose verify\``,
      { key: manifest.key, stripe: stripe.index, chunk },
    );
  }
  return wanted.map((chunk, i) => [chunk, rebuilt[i]!]);
}

/** Chunks in memory as a source, so that a rebuild fetches only missing chunks. */
function inMemory(known: ReadonlyMap<number, Uint8Array>): ChunkSource {
  return {
    id: "memory",
    kind: "edge",
    latency: { meanMs: 0, sdMs: 0 },
    has: (_stripe, chunk) => known.has(chunk),
    fetch: async ({ chunk }) => known.get(chunk)!,
  };
}

/** Resolves to whether the hash of a stored chunk confirms these bytes; a functional chunk has no hash. */
async function isChunk(
  { manifest, stripe, hashes, sha256 }: Filling,
  chunk: number,
  bytes: Uint8Array,
): Promise<boolean> {
  const shape = stripeShape(manifest, stripe);
  if (isFunctional(manifest, chunk) || bytes.length !== shape.shardBytes) return false;
  return checkHash({ manifest, stripe: shape, hashes }, chunk, bytes, sha256).then(
    () => true,
    (error: unknown) => {
      if (toAgaroseError(error).code === "CHUNK_CORRUPT") return false;
      throw error;
    },
  );
}
