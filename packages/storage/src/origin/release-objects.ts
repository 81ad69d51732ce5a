/** One walk over the keys below a prefix that writes their objects into a bucket as plain ones. */
import { AgaroseError } from "@agarose/core";
import type { S3Store } from "../buckets/s3-store.ts";
import { openOrigin } from "../buckets/stores.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import type { DeploymentParts } from "../parts.ts";
import { originOf } from "./adopt-objects.ts";
import { releaseObject, type ReleaseOutcome } from "./release-object.ts";

/** Which objects to release, and where to. */
export interface ReleaseOptions extends WalkOptions {
  /** Another bucket at the endpoint of the origin, by its keys. Default: that of the origin. */
  readonly bucket?: string | undefined;
  /** Whether to report what is due in place of writing it. Default: false. */
  readonly dryRun?: boolean;
  /** Called with each object but those that are equal. */
  readonly onOutcome: (outcome: ReleaseOutcome) => Promise<void>;
}

/** Sums over the objects of the deployment. */
export interface ReleaseTotals {
  /** Written now, or with `dryRun` to be. */
  readonly released: number;
  readonly releasedBytes: number;
  readonly equal: number;
  /** Those that somebody has replaced in the bucket. */
  readonly newer: number;
  /** Those that the bucket has, and that were removed in the deployment. */
  readonly extra: number;
  readonly failed: number;
}

const NONE: ReleaseTotals = { released: 0, releasedBytes: 0, equal: 0, newer: 0, extra: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 4;
const OBJECTS_AT_A_TIME_DRY = 16;

/**
 * Walks once. A failure of one object is an outcome. A dry run writes nothing.
 *
 * @throws CONFIG_INVALID without an origin, USAGE when the bucket is that of a region, and as `walkObjects` does.
 */
export async function releaseObjects(options: ReleaseOptions, context: DeploymentParts): Promise<ReleaseTotals> {
  const { bucket, dryRun = false, onOutcome } = options;
  const target = bucket === undefined ? originOf(context) : openBucket(bucket, context);
  const { endpoint, bucket: name } = target.region;
  const walk: Walk<ReleaseOutcome, ReleaseTotals> = {
    name: `release${dryRun ? " dry" : ""} ${endpoint}/${name}`,
    options,
    objectsAtATime: dryRun ? OBJECTS_AT_A_TIME_DRY : OBJECTS_AT_A_TIME,
    act: (_key, group) => releaseObject(group!, target, dryRun, context),
    add,
    onResult: (outcome) => (outcome.outcome === "equal" ? Promise.resolve() : onOutcome(outcome)),
  };
  try {
    return await walkObjects(walk, NONE, context);
  } finally {
    if (bucket !== undefined) target.close();
  }
}

function openBucket(bucket: string, context: DeploymentParts): S3Store {
  const { config } = context;
  const { endpoint } = originOf(context).region;
  if (config.regions.some((region) => region.endpoint === endpoint && region.bucket === bucket)) {
    const message = `${bucket} is the bucket of a region: choose a different one for plain objects`;
    throw new AgaroseError("USAGE", message, { bucket });
  }
  return openOrigin({ ...config, origin: { ...config.origin!, bucket } }, { attempts: 3 })!;
}

function add(totals: ReleaseTotals, { outcome, bytes }: ReleaseOutcome): ReleaseTotals {
  if (outcome !== "released" && outcome !== "due") return { ...totals, [outcome]: totals[outcome] + 1 };
  return { ...totals, released: totals.released + 1, releasedBytes: totals.releasedBytes + bytes };
}
