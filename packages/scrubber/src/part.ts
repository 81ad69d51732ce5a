/** A part of a range: one step of a child, from where the part before it ended. */
import { loadCodec } from "@agarose/ec-wasm";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";
import { Fence } from "@agarose/storage/commit/fence";
import type { Config } from "@agarose/storage/config/config";
import { signerOf, trustOf } from "@agarose/storage/config/signing";
import { bucketsOf, type Cursor } from "@agarose/storage/listing/walk-cursor";
import { scrubObjects } from "@agarose/storage/maintenance/scrub/scrub-objects";
import type { Totals } from "@agarose/storage/maintenance/scrub/totals";
import { withNewBreaker, writeContextOf } from "@agarose/storage/commit/write-context";
import { openStores, PUT_BYTES_MAX } from "./fetch-store.ts";
import type { Position, Task } from "./ledger.ts";
import type { Settings } from "./options.ts";

/** Repairs of a part. Each takes some 20 requests to each of the regions, and Workers limit those of an invocation. */
const DAMAGED_MAX = 100;
/** Manifests that are read at a time: six requests of an invocation may wait for their answers. */
const LOOKS = 6;
/** Of what a ledger keeps. A version that keeps something else begins at the first key. */
const FORMAT = 1;

/** The scope of a walk: a cursor of a different one means nothing to it. */
export function scopeOf(config: Config, { prefix = "" }: Settings): string {
  return JSON.stringify([FORMAT, prefix, bucketsOf(config.regions)]);
}

/** The client of the regions, and the number of requests that it has sent. */
export function contextOf(config: Config) {
  let requests = 0;
  const sign = signerOf(config);
  const context = writeContextOf({
    config,
    stores: openStores(config, () => void requests++),
    trust: trustOf(config),
    ...(sign && { sign }),
    signal: new AbortController().signal,
  });
  return { context, requests: () => requests };
}

/**
 * Walks over the next part, and logs each damaged object as a line of JSON.
 *
 * @throws as `scrubObjects` does. The same part can be walked again.
 */
export async function scrubPart(
  config: Config,
  { prefix, deep, objectsPerPart, concurrency }: Settings,
  { position: from, until, behind, startMs, ranges, usd = 0 }: Task,
): Promise<{ readonly position: Position; readonly requests: number }> {
  const { context, requests } = contextOf(config);
  /** Where the next part begins. */
  const reached: { after?: string; isEnd: boolean } = {
    ...(from.after !== undefined && { after: from.after }),
    isEnd: false,
  };
  const cursor: Cursor<Totals> = {
    after: from.after,
    totals: from.totals,
    pass: async (key) => void (reached.after = key),
    end: async () => void (reached.isEnd = true),
  };
  const { bytesPerSecond } = deep;
  const totals = await scrubObjects(
    {
      prefix,
      deep: {
        ...deep,
        startMs,
        usd: deep.usd === undefined ? undefined : usd,
        bytesPerSecond: bytesPerSecond === undefined ? undefined : bytesPerSecond / Math.min(ranges, concurrency),
      },
      part: {
        cursor,
        until,
        behind,
        objectsMax: objectsPerPart,
        damagedMax: DAMAGED_MAX,
        // Keys beyond the end of a part are checked again by the next one, which must not cost money.
        looks: deep.usd === undefined ? LOOKS : 1,
        width: 1,
      },
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
  return { position: { ...reached, totals }, requests: requests() };
}

/** Encodes in place. */
async function encoderOf(): Promise<Pick<EncoderPool, "encode">> {
  const codec = await loadCodec();
  return {
    async encode(stripe, k, rows) {
      const shardBytes = stripe.length / k;
      const data = Array.from({ length: k }, (_, i) => stripe.subarray(i * shardBytes, (i + 1) * shardBytes));
      return { data, parity: codec.encode(data, rows) as Uint8Array<ArrayBuffer>[] };
    },
  };
}
