/** One walk over the plain objects of the origin that adopts those of which the regions know nothing. */
import { rm } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";
import { S3Store } from "../buckets/s3-store.ts";
import type { ListedObject } from "../buckets/store.ts";
import { makeTempFolder, type OnLeftover } from "../files/owned-files.ts";
import { isInShard } from "../listing/shard.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import type { DeploymentParts } from "../parts.ts";
import { adoptObject, type AdoptOutcome } from "./adopt-object.ts";
import { paceOf } from "../listing/pace.ts";
import { addNumbers } from "../maintenance/add-numbers.ts";

/** Which objects to adopt, and how fast. */
export interface AdoptOptions extends WalkOptions {
  /** Whether to report what is due in place of adopting it. Default: false. */
  readonly dryRun?: boolean;
  /** Bytes per second that the origin is asked for on average. Default: no limit. */
  readonly rate?: number | undefined;
  /** Called with each object but those that are known. */
  readonly onOutcome: (outcome: AdoptOutcome) => Promise<void>;
  /** Hears of a folder that a killed run has left, and that was removed. */
  readonly onLeftover?: OnLeftover;
}

/** Sums over the objects of the origin. */
export interface AdoptTotals {
  readonly objects: number;
  readonly bytes: number;
  /** Adopted now, or with `dryRun` to be. */
  readonly adopted: number;
  readonly adoptedBytes: number;
  /** Of those that are in the regions, the ones that the origin has a younger version of. */
  readonly newer: number;
  readonly failed: number;
}

const NONE: AdoptTotals = { objects: 0, bytes: 0, adopted: 0, adoptedBytes: 0, newer: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 4;
const OBJECTS_AT_A_TIME_DRY = 16;

/** The bucket of plain objects. Throws CONFIG_INVALID where the configuration names none. */
export function originOf({ origin }: Pick<DeploymentParts, "origin">): S3Store {
  if (origin instanceof S3Store) return origin;
  const what = origin ? "an `origin` with only a `url`, which cannot be listed" : "no `origin`";
  throw new AgaroseError("CONFIG_INVALID", `the configuration has ${what}: add the bucket of your plain objects`);
}

/**
 * Walks once. A failure of one object is an outcome. A dry run writes nothing.
 *
 * @throws CONFIG_INVALID without an origin, SOURCE_FAILED or CREDENTIALS_REFUSED where it cannot be listed, USAGE when
 *   the cursor is of another walk, DISK_FULL when it cannot be written.
 */
export async function adoptObjects(options: AdoptOptions, context: DeploymentParts): Promise<AdoptTotals> {
  const { prefix = "", dryRun = false, rate, onOutcome, onLeftover } = options;
  const origin = originOf(context);
  const { endpoint, bucket } = origin.region;
  const folder = dryRun ? undefined : await makeTempFolder("adopt", { onLeftover });
  const how = { origin, folder, pace: paceOf(rate, context) };
  const walk: Walk<AdoptOutcome, AdoptTotals, ListedKey> = {
    name: `adopt${dryRun ? " dry" : ""} ${endpoint}/${bucket}`,
    options,
    items: (after) => listedKeys(origin, prefix, after, context),
    objectsAtATime: dryRun ? OBJECTS_AT_A_TIME_DRY : OBJECTS_AT_A_TIME,
    act: (_key, listed) => adoptObject(listed!, how, context),
    add,
    onResult: (outcome) => (outcome.outcome === "known" ? Promise.resolve() : onOutcome(outcome)),
  };
  try {
    return await walkObjects(walk, NONE, context);
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}

interface ListedKey extends ListedObject {
  readonly key: string;
}

async function* listedKeys(
  origin: S3Store,
  prefix: string,
  after: string | undefined,
  { signal, shard }: DeploymentParts,
): AsyncGenerator<ListedKey> {
  for await (const listed of origin.list(prefix, signal, after)) {
    if (!shard || isInShard(listed.name, shard)) yield { ...listed, key: listed.name };
  }
}

function add(totals: AdoptTotals, { outcome, bytes }: AdoptOutcome): AdoptTotals {
  const sums = addNumbers(totals, { objects: 1, bytes });
  if (outcome === "failed" || outcome === "newer") return addNumbers(sums, { [outcome]: 1 });
  return outcome === "known" || outcome === "gone" ? sums : addNumbers(sums, { adopted: 1, adoptedBytes: bytes });
}
