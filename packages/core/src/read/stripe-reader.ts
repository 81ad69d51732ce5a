/**
 * Reads verified chunks of stripes from the sources of one read. It knows sources, their failures and late binding
 * (`stripe-read.ts`), and nothing of ranges or bodies.
 */
import type { Decoder } from "../codec.ts";
import { HAS_STORE } from "../features.ts";
import {
  checkPage,
  isFunctional,
  LEAF_LIST,
  leafShape,
  stripeShape,
  type StripePart,
  type StripeShape,
} from "../format/manifest/index.ts";
import type { Random } from "../ports.ts";
import type { BlockMemory } from "./block-memory.ts";
import { DELTA_DEFAULT, STRIPE_TIMEOUT_MS_DEFAULT } from "./read-options.ts";
import type { ReadContext, ReadObserver, ReadPolicy, ReadTarget, StripeData } from "./read-options.ts";
import { asksAlone, planReadMs, planStripe, type Candidate, type PlanOptions } from "./read-plan.ts";
import { isFault, type Decoding, type ReadReport, type RequestRecord } from "./read-report.ts";
import { readStripe, type StripeReadOptions } from "./stripe-read.ts";
import { StripeHashes } from "./stripe-hashes.ts";
import { checkLeaves, dataShards } from "./stripe-shards.ts";
import { SourceHealth } from "../sources/source-health.ts";

/** The part of reading a stripe in which the ways to do it differ. */
type Way = Pick<StripeReadOptions, "stripe" | "wanted" | "here" | "hashes" | "checkPart" | "codec" | "signal"> &
  ChunkOrder &
  Partial<Pick<StripeReadOptions, "delta">>;

/** Leaf lists that a read keeps: of so many stripes, some may be under way. */
const LISTS_KEPT = 16;

/** In order, no data chunk may take so many times as long as the k-th of any chunks. */
const FARTHER_MAX = 1.25;

/** How a part is read that others follow. */
export type ChunkOrder = Pick<StripeReadOptions, "until" | "patienceMs">;

/** The stripes of one read. */
export type StripeReader = ReturnType<typeof stripeReader>;

/** Reads stripes of `target`. */
export function stripeReader(target: ReadTarget, context: ReadContext, policy: ReadPolicy, observer: ReadObserver) {
  const { manifest, sources } = target;
  const { clock, sha256, line, memory, random } = context;
  const report: ReadReport = { startMs: clock.now(), requests: [], decoding: { ms: 0, shards: 0 } };
  const stripeHashes = new StripeHashes(manifest, readPage);
  /** The regions of the data chunks. */
  const regions = manifest.placement.slice(0, manifest.k);
  /** Of the sources in this read. Only failures count: a source that fails now and then is not worth asking first. */
  const health = new SourceHealth(clock);
  /** By stripe. The pieces of a stripe share one list. */
  const leafLists = new Map<number, Promise<Uint8Array>>();
  /** The numbers that `random` returned for the first stripe. */
  const draws: number[] = [];
  return {
    report,
    /** The hashes that its shards are verified by. */
    hashes: stripeHashes,
    regions,
    remembered,

    /**
     * Resolves to the data shards of a stripe, by this read or by another one.
     *
     * @param lastStripe the last stripe that will be asked for: sources fetch ahead.
     */
    async data(stripe: StripeShape, lastStripe: number, signal: AbortSignal): Promise<readonly Uint8Array[]> {
      const share = HAS_STORE ? target.share : undefined;
      if (!share) return (await ownData(stripe, lastStripe, signal)).data;
      let isOwn = false;
      const readOwn = (shared: AbortSignal): Promise<StripeData> => {
        isOwn = true;
        return ownData(stripe, lastStripe, shared);
      };
      const read = await share(stripe.index, readOwn, signal);
      if (!isOwn) {
        // The work of another read for this one counts for both.
        report.requests.push(...(read.made?.() ?? []));
        add(report.decoding, read.decoding);
      }
      return read.data;
    },

    /**
     * How a stripe is read in order: the first data chunk from `chunk` on whose region is down, k if none is. Undefined
     * if it is better read whole, because a cache or a peer has chunks, or some data chunk is far away.
     */
    directUntil(stripe: StripeShape, chunk: number): number | undefined {
      const { k, missing } = manifest;
      const candidates = planStripe(manifest, stripe.index, sources, { isNarrow: true });
      // Where parity is far nearer than some data chunk, any k chunks come sooner than all data chunks. Extra chunks do
      // not count: they are near, and would have whole stripes read of just those objects that are read most.
      const mostMs =
        FARTHER_MAX *
        planReadMs(
          k,
          0,
          candidates.filter(({ chunk: index, source }) => source.kind !== "region" || !isFunctional(manifest, index)),
        );
      let until = k;
      for (let index = k - 1; index >= 0; index--) {
        const { source, estimate } = candidates.find((candidate) => candidate.chunk === index) ?? {};
        if (source && source.kind !== "region") return undefined;
        const isDown =
          !source || health.isAvoided(source.id) || missing?.includes(index) || !asksAlone(k, index, candidates);
        if (!isDown && estimate!.meanMs > mostMs) return undefined;
        if (!isDown || index < chunk) continue;
        until = index;
        // Else a row would try it again as soon as others have forgotten its failure.
        health.failed(regions[index]!);
      }
      return until;
    },

    /**
     * Resolves to chunk `wanted` of a stripe or of a part of it: from its own sources, or decoded from k others.
     *
     * @param order set if parts of this chunk are read one after the other. Rejects then with NOT_ENOUGH_CHUNKS when
     *   its own source fails or is late, and avoids that.
     */
    async chunk(stripe: StripePart, wanted: number, signal: AbortSignal, order: ChunkOrder = {}): Promise<Uint8Array> {
      const codec = countedCodec(report.decoding);
      const hashes = stripeHashes.of(stripe.index, signal);
      const shards = await race({ stripe, wanted, hashes, codec, signal, ...order }).catch((error: unknown) => {
        if (order.patienceMs !== undefined && !signal.aborted) health.failed(regions[wanted]!);
        throw error;
      });
      const [shard] = await dataShards(manifest.k, shards, codec, [wanted]);
      return shard!;
    },

    /**
     * Resolves to the k data shards of a part, from any k chunks.
     *
     * @param here those of its shards that were read before.
     */
    async row(
      stripe: StripePart,
      here: ReadonlyMap<number, Uint8Array>,
      signal: AbortSignal,
      order: ChunkOrder,
    ): Promise<readonly Uint8Array[]> {
      const codec = countedCodec(report.decoding);
      const hashes = stripeHashes.of(stripe.index, signal);
      return dataShards(manifest.k, await race({ stripe, here, hashes, delta: 0, codec, signal, ...order }), codec);
    },

    /**
     * Resolves to the verified leaf list of a stripe, by which the blocks of a part are verified. Every copy is the
     * same, so that it takes one.
     */
    leaves(stripe: number, signal: AbortSignal): Promise<Uint8Array> {
      const shape = leafShape(manifest, stripe);
      const read = async (): Promise<Uint8Array> => {
        const hashes = stripeHashes.of(stripe, signal);
        const checkPart = async (list: Uint8Array): Promise<void> => checkLeaves(await hashes, stripe, list, sha256);
        return (await race({ stripe: shape, hashes, checkPart, codec: context.codec, signal })).get(LEAF_LIST)!;
      };
      const list =
        leafLists.get(stripe) ?? remembered([`${manifest.version}/${stripe}`], shape.shardBytes, read, signal);
      leafLists.set(stripe, list);
      // A read goes forward, and an object has a list for each stripe.
      leafLists.delete(stripe - LISTS_KEPT);
      return list;
    },
  };

  /** Reads a block from memory, or by `read` where there is no memory. See `BlockMemory.read`. */
  function remembered(...block: Parameters<BlockMemory["read"]>): Promise<Uint8Array> {
    return memory?.read(...block) ?? block[2]();
  }

  /** Reads a page of hashes: from a bucket, because no cache has any, and from one more where that is late or wrong. */
  function readPage(page: number, stripe: StripeShape, signal: AbortSignal): Promise<Uint8Array> {
    const checkPart = (bytes: Uint8Array): Promise<void> => checkPage(manifest, page, bytes, sha256);
    const hashes = Promise.resolve(new Uint8Array());
    const sharePage = HAS_STORE ? target.sharePage : undefined;
    const own = async (): Promise<Uint8Array> =>
      (await race({ stripe, hashes, checkPart, delta: 0, codec: context.codec, signal })).get(LEAF_LIST)!;
    const read = sharePage ? () => sharePage(page, own) : own;
    return remembered([`${manifest.version}/page/${page}`], stripe.shardBytes, read, signal);
  }

  async function ownData(stripe: StripeShape, lastStripe: number, signal: AbortSignal): Promise<StripeData> {
    // Of this stripe alone, for the other reads that share it.
    const decoding = HAS_STORE ? { ms: 0, shards: 0 } : report.decoding;
    // A consumer may overwrite or transfer the bytes that it gets.
    if (manifest.inline) return { data: [manifest.inline.slice()], decoding };
    const codec = countedCodec(decoding);
    const last = stripeShape(manifest, lastStripe);
    const until = last.chunkOffset + last.shardBytes;
    try {
      const hashes = stripeHashes.of(stripe.index, signal);
      const shards = await race({ stripe, until, hashes, codec, signal });
      const data = await dataShards(manifest.k, shards, codec);
      if (HAS_STORE) add(report.decoding, decoding);
      const made = (): RequestRecord[] => report.requests.filter((request) => request.stripe === stripe.index);
      return { data, decoding, ...(HAS_STORE && { made }) };
    } finally {
      for (const source of sources) source.release?.(stripe.index);
    }
  }

  function race(way: Way): Promise<Map<number, Uint8Array>> {
    const { stripe, wanted, checkPart, delta } = way;
    const { index } = stripe;
    const isWhole = stripe.shardBytes === stripeShape(manifest, index).shardBytes;
    const isNarrow = isWhole && line && !line.isWide(manifest.k * stripe.shardBytes, regions);
    const plan = (options?: PlanOptions): Candidate[] =>
      planStripe(manifest, index, sources, { ...options, ...(checkPart && { chunks: [LEAF_LIST] }) }).filter(
        ({ chunk, source: { kind, servesParts } }) => {
          if (checkPart) return delta === undefined ? servesParts : kind === "region";
          return servesParts === "wanted" && wanted !== undefined ? chunk === wanted : isWhole || servesParts === true;
        },
      );
    return readStripe({
      delta: DELTA_DEFAULT,
      hedge: true,
      timeoutMs: STRIPE_TIMEOUT_MS_DEFAULT,
      ...policy,
      ...context,
      ...way,
      manifest,
      // A spare chunk would delay the others where the line is what they wait for.
      ...(isNarrow && line.rate && { delta: 0 }),
      candidates: plan({ health, isNarrow, random: sameRandom() }),
      further: sources.flatMap(({ updated }) =>
        updated ? [updated.then((isMore) => (isMore === false ? undefined : plan()))] : [],
      ),
      onRequest: (record) => {
        if (record.outcome === "pending") report.requests.push(record);
        if (isFault(record)) health.failed(record.source);
        observer.onRequest?.(record);
      },
    });
  }

  /** Loads the codec, whose work is added to `decoding`. */
  function countedCodec(decoding: Decoding): () => Promise<Decoder> {
    return async () => {
      const decoder = await context.codec();
      return {
        reconstruct(k, shards, wanted) {
          const startMs = clock.now();
          const decoded = decoder.reconstruct(k, shards, wanted);
          add(decoding, { ms: clock.now() - startMs, shards: wanted.length });
          return decoded;
        },
      };
    };
  }

  /**
   * Returns the same numbers for each stripe: all choose alike among equals, so that one request serves many stripes.
   */
  function sameRandom(): Random {
    let at = 0;
    return () => (draws[at++] ??= random());
  }
}

function add(sum: Decoding, { ms, shards }: Decoding): void {
  sum.ms += ms;
  sum.shards += shards;
}
