/** Which objects a scrub reads in full, and how much of that the limits on bandwidth and money admit. */
import { hash } from "node:crypto";
import { AgaroseError } from "@agarose/core";
import type { WriteContext } from "../../commit/write-context.ts";
import type { KeyGroup } from "../../listing/key-groups.ts";
import { paceOf } from "../../listing/pace.ts";

/** The objects to read in full. Without a share and an age, none. */
export interface DeepOptions {
  /** The share of the objects that is read at random, 0 to 1. Default: 0. */
  readonly share?: number | undefined;
  /** After how long every object has been read. Default: never. */
  readonly ageMs?: number | undefined;
  /** The time from one walk to the next. With `ageMs`, each walk reads its part of the objects. Default: a day. */
  readonly everyMs?: number | undefined;
  /** When the walk began, in milliseconds since 1970: it decides which part is read. Default: now. */
  readonly startMs?: number | undefined;
  /** The most to read, on average over objects. Default: no limit. */
  readonly bytesPerSecond?: number | undefined;
  /** The most that reads may cost, in US dollars, by `egressUsdPerGb` of the regions. Default: no limit. */
  readonly usd?: number | undefined;
}

/** The cost of a read. */
export interface ReadCost {
  readonly bytes: number;
  readonly usd: number;
}

const DAY_MS = 86_400_000;
const GB = 1e9;
const HASH_DIGITS = 12;

/** Decides for one walk. Throws USAGE when money is limited and a region has no price. */
export function deepReads(
  options: DeepOptions,
  context: Pick<WriteContext, "config" | "clock" | "random" | "nowMs" | "signal">,
) {
  const { regions } = context.config;
  const {
    share = 0,
    ageMs,
    everyMs = DAY_MS,
    startMs = context.nowMs(),
    usd: usdMax = Number.POSITIVE_INFINITY,
  } = options;
  const unpriced = regions.filter(({ egressUsdPerGb }) => egressUsdPerGb === undefined).map(({ name }) => name);
  if (options.usd !== undefined && unpriced.length > 0) {
    throw new AgaroseError(
      "USAGE",
      `a budget needs a price of every region, and ${unpriced.length} of ${regions.length} have none ` +
        `(${unpriced.join(", ")}): add "egressUsdPerGb" to them`,
    );
  }
  const prices = new Map(regions.map(({ name, egressUsdPerGb = 0 }) => [name, egressUsdPerGb]));
  const parts = ageMs === undefined ? 0 : Math.max(1, Math.floor(ageMs / everyMs));
  const part = parts === 0 ? 0 : Math.floor(startMs / everyMs) % parts;
  const pace = paceOf(options.bytesPerSecond, context);
  let spentUsd = 0;
  let last: Promise<unknown> = Promise.resolve();
  return {
    /** Whether it is an object's turn: by its part, which depends on its key and the time only, or by chance. */
    isDue({ key }: KeyGroup): boolean {
      if (parts > 0 && partOf(key, parts) === part) return true;
      return share > 0 && context.random() < share;
    },

    /** Reserves the money for all chunks of an object; undefined when there is not enough left. */
    reserve({ chunks }: KeyGroup): ReadCost | undefined {
      const bytes = chunks.reduce((sum, chunk) => sum + chunk.bytes, 0);
      const usd = chunks.reduce((sum, { store, bytes: of }) => sum + (of / GB) * prices.get(store.region.name)!, 0);
      if (spentUsd + usd > usdMax) return undefined;
      spentUsd += usd;
      return { bytes, usd };
    },

    /** Runs `read` when those before it have ended, and the bandwidth has room. Rejects when the walk is aborted. */
    run<T>({ bytes }: ReadCost, read: () => Promise<T>): Promise<T> {
      const result = last.then(() => pace(bytes)).then(read);
      last = result.catch(() => {});
      return result;
    },
  };
}

/** A number below `parts` that a key always has. */
function partOf(key: string, parts: number): number {
  return Number.parseInt(hash("sha256", key).slice(0, HASH_DIGITS), 16) % parts;
}
