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
import { inlineBytes } from "../format/manifest/manifest.ts";
import type { Clock, Random } from "../ports.ts";
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
export class StripeReader {
  readonly report: ReadReport;
  /** The hashes that its shards are verified by. */
  readonly hashes: StripeHashes;
  readonly #target: ReadTarget;
  readonly #context: ReadContext;
  readonly #policy: ReadPolicy;
  readonly #observer: ReadObserver;
  /** Of the sources in this read. Only failures count: a source that fails now and then is not worth asking first. */
  readonly #health: SourceHealth;
  /** By stripe. The pieces of a stripe share one list. */
  readonly #leaves = new Map<number, Promise<Uint8Array>>();
  /** The numbers that `random` returned for the first stripe. */
  readonly #draws: number[] = [];

  constructor(target: ReadTarget, context: ReadContext, policy: ReadPolicy, observer: ReadObserver) {
    this.report = { startMs: context.clock.now(), requests: [], decoding: { ms: 0, shards: 0 } };
    this.#target = target;
    this.#context = context;
    this.#policy = policy;
    this.#observer = observer;
    this.#health = new SourceHealth(context.clock);
    this.hashes = new StripeHashes(target.manifest, (...page) => this.#page(...page));
  }

  /**
   * Resolves to the data shards of a stripe, by this read or by another one.
   *
   * @param lastStripe the last stripe that will be asked for: sources fetch ahead.
   */
  async data(stripe: StripeShape, lastStripe: number, signal: AbortSignal): Promise<readonly Uint8Array[]> {
    const share = HAS_STORE ? this.#target.share : undefined;
    if (!share) return (await this.#own(stripe, lastStripe, signal)).data;
    let isOwn = false;
    const readOwn = (shared: AbortSignal): Promise<StripeData> => {
      isOwn = true;
      return this.#own(stripe, lastStripe, shared);
    };
    const read = await share(stripe.index, readOwn, signal);
    if (!isOwn) {
      // The work of another read for this one counts for both.
      this.report.requests.push(...(read.made?.() ?? []));
      add(this.report.decoding, read.decoding);
    }
    return read.data;
  }

  /**
   * How a stripe is read in order: the first data chunk from `chunk` on whose region is down, k if none is. Undefined
   * if it is better read whole, because a cache or a peer has chunks, or some data chunk is far away.
   */
  directUntil(stripe: StripeShape, chunk: number): number | undefined {
    const { manifest, sources } = this.#target;
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
        !source || this.#health.isAvoided(source.id) || missing?.includes(index) || !asksAlone(k, index, candidates);
      if (!isDown && estimate!.meanMs > mostMs) return undefined;
      if (!isDown || index < chunk) continue;
      until = index;
      // Else a row would try it again as soon as others have forgotten its failure.
      this.#health.failed(this.regions[index]!);
    }
    return until;
  }

  /** The regions of the data chunks. */
  get regions(): readonly string[] {
    const { k, placement } = this.#target.manifest;
    return placement.slice(0, k);
  }

  /**
   * Resolves to chunk `wanted` of a stripe or of a part of it: from its own sources, or decoded from k others.
   *
   * @param order set if parts of this chunk are read one after the other. Rejects then with NOT_ENOUGH_CHUNKS when its
   *   own source fails or is late, and avoids that.
   */
  async chunk(stripe: StripePart, wanted: number, signal: AbortSignal, order: ChunkOrder = {}): Promise<Uint8Array> {
    const codec = this.#codec(this.report.decoding);
    const hashes = this.hashes.of(stripe.index, signal);
    const shards = await this.#race({ stripe, wanted, hashes, codec, signal, ...order }).catch((error: unknown) => {
      if (order.patienceMs !== undefined && !signal.aborted) this.#health.failed(this.regions[wanted]!);
      throw error;
    });
    const [shard] = await dataShards(this.#target.manifest.k, shards, codec, [wanted]);
    return shard!;
  }

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
    const codec = this.#codec(this.report.decoding);
    const hashes = this.hashes.of(stripe.index, signal);
    return dataShards(
      this.#target.manifest.k,
      await this.#race({ stripe, here, hashes, delta: 0, codec, signal, ...order }),
      codec,
    );
  }

  /**
   * Resolves to the verified leaf list of a stripe, by which the blocks of a part are verified. Every copy is the same,
   * so that it takes one.
   */
  leaves(stripe: number, signal: AbortSignal): Promise<Uint8Array> {
    const { codec, sha256 } = this.#context;
    const { manifest } = this.#target;
    const shape = leafShape(manifest, stripe);
    const read = async (): Promise<Uint8Array> => {
      const hashes = this.hashes.of(stripe, signal);
      const checkPart = async (list: Uint8Array): Promise<void> => checkLeaves(await hashes, stripe, list, sha256);
      return (await this.#race({ stripe: shape, hashes, checkPart, codec, signal })).get(LEAF_LIST)!;
    };
    const list =
      this.#leaves.get(stripe) ?? this.remembered([`${manifest.version}/${stripe}`], shape.shardBytes, read, signal);
    this.#leaves.set(stripe, list);
    // A read goes forward, and an object has a list for each stripe.
    this.#leaves.delete(stripe - LISTS_KEPT);
    return list;
  }

  /** Reads a block from memory, or by `read` where there is no memory. See `BlockMemory.read`. */
  remembered(...block: Parameters<BlockMemory["read"]>): Promise<Uint8Array> {
    return this.#context.memory?.read(...block) ?? block[2]();
  }

  /** Reads a page of hashes: from a bucket, because no cache has any, and from one more where that is late or wrong. */
  #page(page: number, stripe: StripeShape, signal: AbortSignal): Promise<Uint8Array> {
    const { manifest, sharePage } = this.#target;
    const { codec, sha256 } = this.#context;
    const checkPart = (bytes: Uint8Array): Promise<void> => checkPage(manifest, page, bytes, sha256);
    const hashes = Promise.resolve(new Uint8Array());
    const own = async (): Promise<Uint8Array> =>
      (await this.#race({ stripe, hashes, checkPart, delta: 0, codec, signal })).get(LEAF_LIST)!;
    const read = HAS_STORE && sharePage ? () => sharePage(page, own) : own;
    return this.remembered([`${manifest.version}/page/${page}`], stripe.shardBytes, read, signal);
  }

  async #own(stripe: StripeShape, lastStripe: number, signal: AbortSignal): Promise<StripeData> {
    const { manifest, sources } = this.#target;
    const decoding = { ms: 0, shards: 0 };
    const inline = inlineBytes(manifest);
    if (inline) return { data: [inline], decoding };
    const codec = this.#codec(decoding);
    const last = stripeShape(manifest, lastStripe);
    const until = last.chunkOffset + last.shardBytes;
    try {
      const hashes = this.hashes.of(stripe.index, signal);
      const shards = await this.#race({ stripe, until, hashes, codec, signal });
      const data = await dataShards(manifest.k, shards, codec);
      add(this.report.decoding, decoding);
      const made = (): RequestRecord[] => this.report.requests.filter((request) => request.stripe === stripe.index);
      return { data, decoding, ...(HAS_STORE && { made }) };
    } finally {
      for (const source of sources) source.release?.(stripe.index);
    }
  }

  #race(way: Way): Promise<Map<number, Uint8Array>> {
    const { manifest, sources } = this.#target;
    const { line } = this.#context;
    const { stripe, wanted, checkPart, delta } = way;
    const { index } = stripe;
    const isWhole = stripe.shardBytes === stripeShape(manifest, index).shardBytes;
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
      ...this.#policy,
      ...this.#context,
      ...way,
      manifest,
      candidates: plan({
        health: this.#health,
        random: this.#sameRandom(),
        isNarrow: isWhole && line && !line.isWide(manifest.k * stripe.shardBytes, this.regions),
      }),
      further: sources.flatMap(({ updated }) =>
        updated ? [updated.then((isMore) => (isMore === false ? undefined : plan()))] : [],
      ),
      onRequest: (record) => {
        if (record.outcome === "pending") this.report.requests.push(record);
        if (isFault(record)) this.#health.failed(record.source);
        this.#observer.onRequest?.(record);
      },
    });
  }

  /** Loads the codec, whose work is added to `decoding`. */
  #codec(decoding: Decoding): () => Promise<Decoder> {
    const { codec, clock } = this.#context;
    return async () => timed(await codec(), clock, decoding);
  }

  /**
   * Returns the same numbers for each stripe: all choose alike among equals, so that one request serves many stripes.
   */
  #sameRandom(): Random {
    let at = 0;
    return () => (this.#draws[at++] ??= this.#context.random());
  }
}

function add(sum: Decoding, { ms, shards }: Decoding): void {
  sum.ms += ms;
  sum.shards += shards;
}

/** Wraps `decoder` so that it adds its work to `spent`. */
function timed(decoder: Decoder, clock: Clock, spent: Decoding): Decoder {
  return {
    reconstruct(k, shards, wanted) {
      const startMs = clock.now();
      const decoded = decoder.reconstruct(k, shards, wanted);
      add(spent, { ms: clock.now() - startMs, shards: wanted.length });
      return decoded;
    },
  };
}
