/** Options of a read: the object, the sources, the method, and observers. */
import type { Decoder } from "../codec.ts";
import type { Manifest } from "../format/manifest/index.ts";
import type { ByteRange } from "../http/range.ts";
import type { Clock, Random, Sha256 } from "../ports.ts";
import type { ChunkSource } from "../sources/source.ts";
import type { BlockMemory } from "./block-memory.ts";
import type { Line } from "./line.ts";
import type { Decoding, ReadReport, RequestRecord } from "./read-report.ts";
import type { Hedge } from "./stripe-read.ts";

/** The object, and its sources. */
export interface ReadTarget {
  readonly manifest: Manifest;
  /** Where its chunks may come from. The read closes them. */
  readonly sources: readonly ChunkSource[];
  /** Which bytes to read. Only the stripes that it touches are read. Default: the whole object. */
  readonly range?: ByteRange;
  /** Aborts the read, which then fails with ABORTED. */
  readonly signal?: AbortSignal;
  /** Lets concurrent reads of one version share their requests. Default: each read makes its own. */
  readonly share?: StripeSharing;
  /** Keeps pages of hashes (`ReadPage`) beside the stripes that `share` keeps. Default: they are reread. */
  readonly sharePage?: (page: number, read: () => Promise<Uint8Array>) => Promise<Uint8Array>;
}

/** Dependencies that all reads of a program share. */
export interface ReadContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly sha256: Sha256;
  /** Loads the codec. It is called only when a stripe must be decoded. */
  readonly codec: () => Promise<Decoder>;
  /** The line that all reads of the program share. Default: it bounds nothing, and stripes are read whole. */
  readonly line?: Line;
  /** Keeps small objects, and the blocks of small ranges, for other reads. Default: nothing is kept. */
  readonly memory?: BlockMemory;
}

/** How to read. */
export interface ReadPolicy {
  /** How many requests beyond k each stripe starts with. Default 1. */
  readonly delta?: number;
  /** Whether to ask one more source when the expected time has passed. Default true. */
  readonly hedge?: Hedge;
  /** A stripe fails with READ_TIMEOUT when none of its sources sends anything for this time. Default 30,000 ms. */
  readonly timeoutMs?: number;
  /**
   * The most object bytes that are being fetched or wait for the consumer, in whole stripes: at least one, at most
   * `WINDOW_STRIPES_MAX`. A function is called before each further stripe. Default 16 MiB.
   */
  readonly windowBytes?: number | (() => number);
  /**
   * `none`: a piece whose chunk fails, or is known to be slow, is given up, and so is a late one once a source has
   * `updated`. The read then resolves when all of its pieces are ready. Default: k other chunks replace it.
   */
  readonly fallback?: "stripe" | "none";
  /** Whether to read whole stripes for small ranges too, for `share` to keep. Default false. */
  readonly stripes?: boolean;
}

/** Watches a read without changing it. Its functions must not throw. */
export interface ReadObserver {
  readonly onRequest?: (record: RequestRecord) => void;
  /** Called once when the read ends. `error` is undefined if it is complete, else why it was cancelled or failed. */
  readonly onEnd?: (report: ReadReport, error?: unknown) => void;
}

/** The result of reading one stripe. */
export interface StripeData {
  /** The k data shards in order, with the padding of the last ones. */
  readonly data: readonly Uint8Array[];
  /** Returns the requests that were made for it so far. */
  readonly made?: () => readonly RequestRecord[];
  /** The codec's work for it. */
  readonly decoding: Decoding;
}

/**
 * Reads stripe `stripe` by calling `read`, or resolves to what another read of the same version gets by its own `read`.
 * Must reject when `signal` aborts.
 */
export type StripeSharing = (
  stripe: number,
  read: (signal: AbortSignal) => Promise<StripeData>,
  signal: AbortSignal,
) => Promise<StripeData>;

/** Default of `ReadPolicy.delta`, in requests. */
export const DELTA_DEFAULT = 1;
/** Default of `ReadPolicy.timeoutMs`. */
export const STRIPE_TIMEOUT_MS_DEFAULT = 30_000;
/** Default of `ReadPolicy.windowBytes`. */
export const WINDOW_BYTES_DEFAULT = 16 * 1024 * 1024;
/** The most stripes of a window: small stripes must not cause hundreds of requests at a time. */
export const WINDOW_STRIPES_MAX = 16;
