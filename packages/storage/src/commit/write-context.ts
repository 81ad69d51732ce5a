/** The context of everything that writes. Time and randomness are part of it, so that a test controls every wait. */
import { randomBytes } from "node:crypto";
import { systemClock, type Clock, type Random } from "@agarose/core";
import { acceptUnsigned, type ManifestRecord, type SignatureCheck, type Signer } from "@agarose/core/format";
import type { Config } from "../config/config.ts";
import type { Store } from "../buckets/store.ts";
import { Breaker } from "../regions/ask-regions.ts";
import type { Shard } from "../listing/shard.ts";
import { ClaimRemovals } from "./claim-removals.ts";

/** Refuses writers that a rotation has left behind; `Fence` is the one of the commands. */
export interface WriterFence {
  /** Begins to look which keys are in force, so that `check` need not wait for it. */
  prepare(): void;
  /** Rejects when `record` must not be acknowledged; without one, when this writer may not write at all. */
  check(record?: ManifestRecord, isContent?: boolean): Promise<void>;
}

/** The input of `writeContextOf`. */
export interface WriteOptions {
  readonly config: Config;
  readonly stores: readonly Store[];
  readonly signal: AbortSignal;
  /** The time of day in milliseconds since 1970, for `modified`. Default: `Date.now`. */
  readonly nowMs?: () => number;
  /** Timers of waits and deadlines. Default: the system's. */
  readonly clock?: Clock;
  /** Spreads waits of writers that meet. Default: `Math.random`. */
  readonly random?: Random;
  /** Signs manifests as the publisher. Default: they stay unsigned. */
  readonly sign?: Signer;
  /** Whose manifests count. Default: everyone's. */
  readonly trust?: SignatureCheck;
  /** Whose manifests count for readers of what is written. Default: `trust`. */
  readonly readerTrust?: SignatureCheck;
  /** Refuses writers that a rotation has left behind, and buckets of other regions. Default: no one is refused. */
  readonly fence?: WriterFence;
  /** 32 hex digits that no other put ever uses. Default: at random. */
  readonly newUpload?: () => string;
  /** Shared by all that is done with it, so that a region that hangs delays only the first. Default: a new one. */
  readonly breaker?: Breaker;
  /** Shared by the objects of a command, which removes its claims many at a time. Default: each removes its own. */
  readonly claimRemovals?: ClaimRemovals;
  /** The keys that its walks see. Default: all. */
  readonly shard?: Shard | undefined;
  /** The lists that walks read in place of listing a region, if they write nothing by what is listed. */
  readonly inventories?: ReadonlyMap<Store, Pick<Store, "list">> | undefined;
  /** Hears of each key that it has entered in the repair queue. */
  readonly onQueued?: (key: string) => void;
}

type Optional = "sign" | "fence" | "shard" | "inventories" | "onQueued";
/** `WriteOptions` with their defaults, but without a signer or a fence when there is none. */
export type WriteContext = Required<Omit<WriteOptions, Optional>> & Pick<WriteOptions, Optional>;

/** The part of it that asks the regions. */
export type RegionParts = Pick<
  WriteContext,
  "stores" | "signal" | "clock" | "breaker" | "trust" | "shard" | "inventories" | "onQueued"
>;

/** Fills in the defaults of `options`. */
export function writeContextOf(options: WriteOptions): WriteContext {
  const { config, stores, signal, nowMs = Date.now, clock = systemClock, sign, fence } = options;
  const breaker = options.breaker ?? new Breaker(clock);
  return {
    config,
    stores,
    signal,
    nowMs,
    clock,
    random: options.random ?? Math.random,
    trust: options.trust ?? acceptUnsigned,
    readerTrust: options.readerTrust ?? options.trust ?? acceptUnsigned,
    newUpload: options.newUpload ?? (() => randomBytes(16).toString("hex")),
    breaker,
    claimRemovals: options.claimRemovals ?? new ClaimRemovals({ stores, clock, breaker }, 1),
    ...(sign && { sign }),
    ...(fence && { fence }),
    ...(options.shard && { shard: options.shard }),
  };
}

/** The same, but it has not seen yet which regions hang. */
export function withNewBreaker<T extends WriteContext>(context: T): T {
  const breaker = new Breaker(context.clock);
  return { ...context, breaker, claimRemovals: new ClaimRemovals({ ...context, breaker }, 1) };
}

/** The fewest regions that any two of which overlap. */
export function majorityOf(stores: readonly unknown[]): number {
  return Math.floor(stores.length / 2) + 1;
}

const PAUSE_MS = 50;

/** Waits for a random time that doubles with each attempt, counted from 1: at most 50 ms x 2^attempt. */
export function pause(attempt: number, context: Pick<WriteContext, "clock" | "random" | "signal">): Promise<void> {
  return sleep(context.random() * PAUSE_MS * 2 ** attempt, context);
}

/** Waits for `ms` milliseconds. Rejects with the reason of `signal` when the caller aborts, or has aborted before. */
export function sleep(ms: number, { clock, signal }: Pick<WriteContext, "clock" | "signal">): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    signal.throwIfAborted();
    const onAbort = (): void => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
