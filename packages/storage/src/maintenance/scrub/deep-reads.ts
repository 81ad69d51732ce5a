/** Which objects a scrub reads in full, and how much of that the limits on bandwidth and money admit. */
import { hash } from "node:crypto";
import { AgaroseError } from "@agarose/core";
import type { WriteContext } from "../../commit/write-context.ts";
import type { KeyGroup } from "../../listing/key-groups.ts";
import { paceOf, type Pace } from "../../listing/pace.ts";

/** The objects to read in full. Without a share and an age, none. */
export interface DeepOptions {
  /** The share of the objects that is read at random, 0 to 1. Default: 0. */
  readonly share?: number;
  /** After how long every object has been read. Default: never. */
  readonly ageMs?: number;
  /** The time from one walk to the next. With `ageMs`, each walk reads its part of the objects. Default: a day. */
  readonly everyMs?: number;
  /** When the walk began, in milliseconds since 1970: it decides which part is read. Default: now. */
  readonly startMs?: number;
  /** The most to read, on average over objects. Default: no limit. */
  readonly bytesPerSecond?: number;
  /** The most that reads may cost, in US dollars, by `egressUsdPerGb` of the regions. Default: no limit. */
  readonly usd?: number;
}

/** The cost of a read. */
export interface ReadCost {
  readonly bytes: number;
  readonly usd: number;
}

const DAY_MS = 86_400_000;
const GB = 1e9;
const HASH_DIGITS = 12;

type DeepContext = Pick<WriteContext, "config" | "clock" | "random" | "nowMs" | "signal">;

/** Decides for one walk. Reads run one after the other. */
export class DeepReads {
  readonly #options: DeepOptions;
  readonly #context: DeepContext;
  readonly #prices: ReadonlyMap<string, number>;
  readonly #parts: number;
  readonly #part: number;
  readonly #pace: Pace;
  #usd = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** Throws USAGE when money is limited and a region has no price. */
  constructor(options: DeepOptions, context: DeepContext) {
    const { regions } = context.config;
    const unpriced = regions.filter(({ egressUsdPerGb }) => egressUsdPerGb === undefined).map(({ name }) => name);
    if (options.usd !== undefined && unpriced.length > 0) {
      throw new AgaroseError(
        "USAGE",
        `a budget needs a price of every region, and ${unpriced.length} of ${regions.length} have none ` +
          `(${unpriced.join(", ")}): add "egressUsdPerGb" to them`,
      );
    }
    this.#options = options;
    this.#pace = paceOf(options.bytesPerSecond, context);
    this.#context = context;
    this.#prices = new Map(regions.map(({ name, egressUsdPerGb = 0 }) => [name, egressUsdPerGb]));
    const { ageMs, everyMs = DAY_MS } = options;
    this.#parts = ageMs === undefined ? 0 : Math.max(1, Math.floor(ageMs / everyMs));
    this.#part = this.#parts === 0 ? 0 : Math.floor((options.startMs ?? context.nowMs()) / everyMs) % this.#parts;
  }

  /** Whether it is an object's turn: by its part, which depends on its key and the time only, or by chance. */
  isDue({ key }: KeyGroup): boolean {
    const { share = 0 } = this.#options;
    if (this.#parts > 0 && partOf(key, this.#parts) === this.#part) return true;
    return share > 0 && this.#context.random() < share;
  }

  /** Reserves the money for all chunks of an object; undefined when there is not enough left. */
  reserve({ chunks }: KeyGroup): ReadCost | undefined {
    const bytes = chunks.reduce((sum, chunk) => sum + chunk.bytes, 0);
    const usd = chunks.reduce((sum, { store, bytes: of }) => sum + (of / GB) * this.#prices.get(store.region.name)!, 0);
    if (this.#usd + usd > (this.#options.usd ?? Number.POSITIVE_INFINITY)) return undefined;
    this.#usd += usd;
    return { bytes, usd };
  }

  /** Runs `read` when those before it have ended, and the bandwidth has room. Rejects when the walk is aborted. */
  run<T>({ bytes }: ReadCost, read: () => Promise<T>): Promise<T> {
    const result = this.#last.then(() => this.#pace(bytes)).then(read);
    this.#last = result.catch(() => {});
    return result;
  }
}

/** A number below `parts` that a key always has. */
function partOf(key: string, parts: number): number {
  return Number.parseInt(hash("sha256", key).slice(0, HASH_DIGITS), 16) % parts;
}
