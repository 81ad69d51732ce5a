/**
 * A part of a walk: one step of the Workflow, from where the part before it ended.
 */
import { loadCodec } from "@agarose/ec-wasm";
import { encoderOf } from "./codec.ts";
import { Fence } from "@agarose/storage/commit/fence";
import type { Config } from "@agarose/storage/config/config";
import { signerOf, trustOf } from "@agarose/storage/config/signing";
import type { Cursor } from "@agarose/storage/listing/walk-cursor";
import { scrubObjects } from "@agarose/storage/maintenance/scrub/scrub-objects";
import { NO_TOTALS, type Totals } from "@agarose/storage/maintenance/scrub/totals";
import { withNewBreaker, writeContextOf } from "@agarose/storage/commit/write-context";
import { openStores, PUT_BYTES_MAX } from "./fetch-store.ts";
import type { Settings } from "./options.ts";

/** Where a walk is between two parts. The Workflow keeps it, so it is plain JSON. */
export interface Position {
  /** The last key that is done. Undefined at the start. */
  readonly after?: string;
  readonly totals: Totals;
  readonly isEnd: boolean;
}

/** Before the first part. */
export const START: Position = { totals: NO_TOTALS, isEnd: false };

/** Repairs of a part. Each takes some 20 requests to each of the regions, and Workers limit those of an invocation. */
const DAMAGED_MAX = 100;

/**
 * Walks over the next part, and logs each damaged object as a line of JSON.
 *
 * @throws as `scrubObjects` does. The same part can be walked again.
 */
export async function scrubPart(
  config: Config,
  { prefix, deep, objectsPerPart }: Settings,
  from: Position,
  startMs: number,
): Promise<Position> {
  const stores = openStores(config);
  const cursor = new PartCursor(from);
  const sign = signerOf(config);
  const context = writeContextOf({
    config,
    stores,
    trust: trustOf(config),
    ...(sign && { sign }),
    signal: new AbortController().signal,
  });
  const { usd } = deep;
  const totals = await scrubObjects(
    {
      ...(prefix !== undefined && { prefix }),
      deep: { ...deep, startMs, ...(usd !== undefined && { usd: Math.max(0, usd - from.totals.readUsd) }) },
      part: { cursor, objectsMax: objectsPerPart, damagedMax: DAMAGED_MAX, width: 1 },
      chunkBytesMax: PUT_BYTES_MAX,
      onWarning: (line) => console.warn(line),
      onRepair: (outcome) => Promise.resolve(console.log(JSON.stringify(outcome))),
    },
    {
      ...context,
      // The configuration is that of the last deployment, which may be older than a rotation.
      fence: new Fence(withNewBreaker(context)),
      codec: loadCodec,
      encoder: encoderOf,
      widths: new Set(),
    },
  );
  return { ...cursor.position, totals };
}

/** A cursor in memory. */
class PartCursor implements Cursor<Totals> {
  readonly #from: Position;
  #after: string | undefined;
  #isEnd = false;

  constructor(from: Position) {
    this.#from = from;
    this.#after = from.after;
  }

  get after(): string | undefined {
    return this.#from.after;
  }

  get totals(): Totals {
    return this.#from.totals;
  }

  /** Where the next part begins. */
  get position(): Pick<Position, "after" | "isEnd"> {
    return { ...(this.#after !== undefined && { after: this.#after }), isEnd: this.#isEnd };
  }

  async pass(key: string): Promise<void> {
    this.#after = key;
  }

  async end(): Promise<void> {
    this.#isEnd = true;
  }
}
