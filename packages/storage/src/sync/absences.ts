/**
 * Since when a folder lacks the files of objects below a prefix, for `deleteAfter` of a sync: in one record in each
 * region, by the clock of that region.
 *
 * An object counts as absent for as long as a majority of the records says. Each record is replaced only as it was
 * read, so that of two syncs at once the second learns of the first.
 */
import { AgaroseError } from "@agarose/core";
import { keyName, isRecord } from "@agarose/core/format";
import type { Store } from "../buckets/store.ts";
import { SYNC_PREFIX } from "../commit/names.ts";
import { majorityOf, type WriteContext } from "../commit/write-context.ts";
import type { KeyGroup } from "../listing/key-groups.ts";
import { ageOfMajority, answeredClocks } from "../listing/region-clocks.ts";
import { askRegions } from "../regions/ask-regions.ts";
import { recordIn, putRecord } from "../buckets/small-record.ts";
import { jsonIn } from "../config/json.ts";

/** Room for a hundred thousand keys of usual length. */
const RECORD_BYTES_MAX = 8 * 1024 * 1024;

/** Milliseconds since 1970 from which on each key was absent. */
type Since = Readonly<Record<string, number>>;

interface RegionAbsences {
  readonly store: Store;
  readonly etag: string | undefined;
  readonly since: Since;
}

/** The state of one prefix in the regions. */
export type Absences = Awaited<ReturnType<typeof readAbsences>>;

/** Reads the records. A region that does not answer, or has something else there, counts as one that saw nothing. */
export async function readAbsences(prefix: string, context: WriteContext) {
  const name = `${SYNC_PREFIX}${keyName(prefix)}`;
  const ageOf = answeredClocks(context);
  const needed = majorityOf(context.stores);
  const read = async (store: Store, signal: AbortSignal): Promise<RegionAbsences> => {
    const found = await recordIn(store, name, "record", signal, RECORD_BYTES_MAX);
    return { store, etag: found && (found.etag ?? "*"), since: found ? sinceIn(found.bytes.toString()) : {} };
  };
  const outcomes = await askRegions(context.stores, read, { enough: needed }, context);
  let regions = outcomes.flatMap(({ value }) => value ?? []);
  return {
    /**
     * Whether an object has been absent, and stored as it is, for `ms` milliseconds. Who has stored it since then wants
     * it for as long again.
     */
    isDue({ key, manifests }: KeyGroup, ms: number): boolean {
      const stored = new Map(manifests.map((manifest) => [manifest.store, ageOf(manifest)]));
      const ages = regions.map(({ store, since }) => {
        const modifiedMs = Object.hasOwn(since, key) ? since[key] : undefined;
        if (modifiedMs === undefined) return 0;
        return Math.min(ageOf({ store, modifiedMs }), stored.get(store) ?? Number.POSITIVE_INFINITY);
      });
      return ageOfMajority(ages, needed) >= ms;
    },

    /**
     * Notes which objects are absent now: new ones from now on, and no others than these and those that `isOther`
     * keeps. `isDue` then goes by the regions that took it, unless another sync has changed their record since it was
     * read. Resolves to whether a majority took it.
     *
     * @param isClaimed whether something is removed by it, so that records are written though nothing has changed.
     * @throws USAGE where they are too many for a record.
     */
    async note(absent: readonly string[], isOther: (key: string) => boolean, isClaimed: boolean): Promise<boolean> {
      const before = new Map(regions.map((region) => [region.store, region]));
      const put = async (store: Store, signal: AbortSignal): Promise<void> => {
        const { etag, since } = before.get(store)!;
        // A time in the future, noted by a wrong clock, restarts.
        const nowMs = ageOf({ store, modifiedMs: 0 });
        const kept = Object.entries(since).filter(([key]) => isOther(key));
        const noted = absent.map((key) => [key, Math.min(nowMs, Object.hasOwn(since, key) ? since[key]! : nowMs)]);
        const next = Object.fromEntries([...kept, ...noted]) as Since;
        if (!isClaimed && isSame(since, next)) return;
        // Its ETag must differ also where the absences do not.
        const body = Buffer.from(JSON.stringify({ absent: next, sync: context.newUpload() }));
        if (body.length > RECORD_BYTES_MAX) throw tooMany(absent.length);
        const condition = etag === undefined ? { ifNoneMatch: "*" as const } : { ifMatch: etag };
        await putRecord(store, name, body, { ...condition, signal });
      };
      const patience = { enough: Math.min(before.size, needed) };
      const written = await askRegions([...before.keys()], put, patience, context);
      const refused = written.find(({ error }) => error?.code === "USAGE");
      if (refused) throw refused.error;
      regions = written.flatMap(({ store, error }) => (error ? [] : before.get(store)!));
      return regions.length >= needed;
    },
  };
}

/** Of a record that is something else, nothing: its objects are absent from now on. */
function sinceIn(text: string): Since {
  const { absent } = Object(jsonIn(text)) as { absent?: unknown };
  if (!isRecord(absent)) return {};
  return Object.fromEntries(Object.entries(absent).filter(([, ms]) => Number.isFinite(ms))) as Since;
}

function isSame(a: Since, b: Since): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

function tooMany(objects: number): AgaroseError {
  const message =
    `${objects} objects have no file, and a record of ${RECORD_BYTES_MAX} bytes has no room for them: remove some with ` +
    "`delete` alone";
  return new AgaroseError("USAGE", message, { objects, max: RECORD_BYTES_MAX });
}
