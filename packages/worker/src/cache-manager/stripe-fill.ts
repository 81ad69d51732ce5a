/**
 * Verified chunks of one stripe for the chunk cache: what is stored already, then a source that has the chunk (its region, or a
 * peer's cache), then, where none delivers, the chunk rebuilt from any k others (Liu et al., V-B). Nothing leaves here
 * unverified. `fill-sources.ts` says who is asked first.
 *
 * A functional chunk (Sprout, section III) no region has: it is computed from any k verified ones. No manifest has a hash of it
 * either, so one that is stored is not trusted but computed again and compared.
 */
import {
  AgaroseError,
  chunkHash,
  isFunctional,
  planStripe,
  readStripe,
  stripeShape,
  toAgaroseError,
  type ChunkSource,
  type Codec,
  type Frame,
  type Sha256,
} from "@agarose/core";
import { fillSources, type FillSourceOptions } from "./fill-sources.ts";

export interface StripeFillOptions extends FillSourceOptions {
  readonly stripe: number;
  readonly wanted: readonly number[];
  /** What the cache has of the stripe, not yet verified. */
  readonly stored: readonly Frame[];
  readonly sha256: Sha256;
  readonly codec: () => Promise<Codec>;
  /** Told whether a peer has delivered what it should. */
  readonly onPeer?: ((name: string, isGood: boolean) => void) | undefined;
}

export interface StripeFill {
  /** Exactly the chunks wanted. */
  readonly chunks: ReadonlyMap<number, Uint8Array>;
  /** Whether what is stored is exactly this already. */
  readonly unchanged: boolean;
  /** Chunks that a region has, and did not deliver. */
  readonly reconstructed: number;
}

const CHUNK_TIMEOUT_MS = 15_000;
const STRIPE_TIMEOUT_MS = 30_000;

/** Rejects with NOT_ENOUGH_CHUNKS or READ_TIMEOUT when too few regions deliver. */
export async function fillStripe(options: StripeFillOptions): Promise<StripeFill> {
  const { stored, wanted } = options;
  const atHand = new Map<number, Uint8Array>();
  for (const { chunk, payload } of stored) if (await isChunk(options, chunk, payload)) atHand.set(chunk, payload);
  const found = new Map([...atHand].filter(([chunk]) => wanted.includes(chunk)));
  const sources = fillSources(options);
  await Promise.all(
    wanted.map(async (chunk) => {
      if (found.has(chunk)) return;
      const bytes = await fetchChunk(options, sources, chunk);
      if (bytes) found.set(chunk, bytes);
    }),
  );
  const missing = wanted.filter((chunk) => !found.has(chunk));
  const known = new Map([...atHand, ...found]);
  for (const [chunk, bytes] of await reconstruct(options, sources, known, missing)) found.set(chunk, bytes);
  const unchanged = stored.length === wanted.length && stored.every((frame) => holds(found.get(frame.chunk), frame));
  const reconstructed = missing.filter((chunk) => !isFunctional(options.manifest, chunk)).length;
  return { chunks: found, unchanged, reconstructed };
}

function holds(bytes: Uint8Array | undefined, { payload }: Frame): boolean {
  return bytes?.length === payload.length && bytes.every((byte, i) => byte === payload[i]);
}

/** The chunk from the first source that has and delivers it; undefined when none does. */
async function fetchChunk(
  options: StripeFillOptions,
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

async function delivered(
  options: StripeFillOptions,
  source: ChunkSource,
  chunk: number,
): Promise<Uint8Array | undefined> {
  const { manifest, stripe, clock, onPeer = () => {} } = options;
  const abort = new AbortController();
  const cancel = clock.after(CHUNK_TIMEOUT_MS, () => abort.abort());
  try {
    const bytes = await source.fetch({ stripe: stripeShape(manifest, stripe), chunk, signal: abort.signal });
    const isGood = await isChunk(options, chunk, bytes);
    if (source.kind === "peer") onPeer(source.id, isGood);
    return isGood ? bytes : undefined;
  } catch (error) {
    // A peer that no longer holds the chunk is as good as before.
    if (source.kind === "peer" && toAgaroseError(error).code !== "CHUNK_MISSING") onPeer(source.id, false);
    return undefined;
  } finally {
    cancel();
  }
}

async function reconstruct(
  options: StripeFillOptions,
  sources: readonly ChunkSource[],
  known: ReadonlyMap<number, Uint8Array>,
  wanted: readonly number[],
): Promise<[number, Uint8Array][]> {
  if (wanted.length === 0) return [];
  const { manifest, estimates, clock, sha256 } = options;
  const stripe = stripeShape(manifest, options.stripe);
  const failed = new Set([...estimates.values()].filter(({ down }) => down).map(({ name }) => name));
  for (const chunk of wanted) if (!isFunctional(manifest, chunk)) failed.add(manifest.placement[chunk]!);
  const shards = await readStripe({
    manifest,
    stripe,
    candidates: planStripe(manifest, stripe.index, [inMemory(known), ...sources], { failed, random: () => 0 }),
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
    // Made of k verified chunks, it can be proved by nothing else.
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

/** Chunks in memory as a source, so that rebuilding fetches only what is lacking. */
function inMemory(known: ReadonlyMap<number, Uint8Array>): ChunkSource {
  return {
    id: "memory",
    kind: "edge",
    latency: { meanMs: 0, sdMs: 0 },
    has: (_stripe, chunk) => known.has(chunk),
    fetch: async ({ chunk }) => known.get(chunk)!,
  };
}

/** Whether these are, by its hash, the bytes of a stored chunk; a functional one has none. */
async function isChunk(
  { manifest, stripe, sha256 }: StripeFillOptions,
  chunk: number,
  bytes: Uint8Array,
): Promise<boolean> {
  if (isFunctional(manifest, chunk)) return false;
  if (bytes.length !== stripeShape(manifest, stripe).shardBytes) return false;
  const expected = chunkHash(manifest, stripe, chunk);
  const actual = await sha256(bytes);
  return expected.every((byte, i) => byte === actual[i]);
}
