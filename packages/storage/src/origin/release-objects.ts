/** One walk over the keys below a prefix that writes their objects into a bucket as plain ones. */
import { Readable } from "node:stream";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { isTombstone, type Manifest } from "@agarose/core/format";
import type { S3Store } from "../buckets/s3-store.ts";
import type { PutOptions } from "../buckets/store.ts";
import { openOrigin } from "../buckets/stores.ts";
import { shownManifest } from "../encryption/secrets-of.ts";
import type { KeyGroup } from "../listing/key-groups.ts";
import { commonRecord } from "../listing/listed-object.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import { objectBody } from "../objects/get-object.ts";
import { readRecord } from "../objects/manifests.ts";
import type { DeploymentParts } from "../parts.ts";
import { etagOfHeaders } from "../upload/object-headers.ts";
import { originOf } from "./adopt-objects.ts";
import { SHA256_MARK } from "./origin-object.ts";
import { addNumbers } from "../maintenance/add-numbers.ts";

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
  const isReleased = outcome === "released" || outcome === "due";
  return addNumbers(totals, isReleased ? { released: 1, releasedBytes: bytes } : { [outcome]: 1 });
}

/** The outcome of one object. */
export type ReleaseOutcome = { readonly key: string; readonly bytes: number } & (
  | { readonly outcome: "released" }
  /** Of a dry run: the bucket has no such object, or an older one. */
  | { readonly outcome: "due" }
  /** The bucket has this very object. */
  | { readonly outcome: "equal" }
  /** Somebody has written to the bucket since the key was stored or removed. It stays. */
  | { readonly outcome: "newer"; readonly problem: string }
  /** The key was removed, and the bucket still has an object. It stays. */
  | { readonly outcome: "extra" }
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

/** The headers of an object that S3 keeps. */
const KEPT_BY_S3 =
  /^(cache-control|content-disposition|content-encoding|content-language|expires|x-amz-tagging|x-amz-meta-.*)$/;
/** Of all user metadata of an object, names included. */
const METADATA_BYTES_MAX = 2_048;
/** A put from memory is repeated after a failure. */
const MEMORY_BYTES_MAX = 8 * 1024 * 1024;

type Looked = NonNullable<Awaited<ReturnType<S3Store["look"]>>>;

/** Releases a listed object; undefined where neither side has one. Rejects only when aborted. */
async function releaseObject(
  group: KeyGroup,
  bucket: S3Store,
  dryRun: boolean,
  context: DeploymentParts,
): Promise<ReleaseOutcome | undefined> {
  const { key } = group;
  const { signal, config } = context;
  try {
    const record =
      (await commonRecord(group, context)) ?? (await readRecord(key, context, { isReadOnly: true })).record;
    const there = await bucket.look(key, signal);
    if (!record || (isTombstone(record) && !there)) return undefined;
    const shown = isTombstone(record) ? undefined : await shownManifest(record, config);
    const bytes = shown?.bytes ?? there!.bytes;
    if (there && shown && isEqual(there, shown)) return { key, bytes, outcome: "equal" };
    if (there && there.modifiedMs > Date.parse(record.modified)) {
      const was = shown ? "stored" : "removed";
      const problem = `the bucket has a version of ${new Date(there.modifiedMs).toISOString()}, the key was ${was} at ${record.modified}`;
      return { key, bytes, outcome: "newer", problem };
    }
    if (!shown) return { key, bytes, outcome: "extra" };
    if (dryRun) return { key, bytes, outcome: "due" };
    const condition = there?.etag === undefined ? { ifNoneMatch: "*" as const } : { ifMatch: there.etag };
    const options = { bytes, contentType: shown.contentType, headers: plainHeaders(shown), ...condition, signal };
    await putPlain(record as Manifest, options, bucket, context);
    const now = await bucket.look(key, signal);
    if (!now || !isEqual(now, shown, true)) throw notKept(key);
    return { key, bytes, outcome: "released" };
  } catch (cause) {
    signal.throwIfAborted();
    return { key, bytes: 0, outcome: "failed", error: toAgaroseError(cause) };
  }
}

async function putPlain(
  manifest: Manifest,
  options: PutOptions,
  bucket: S3Store,
  context: DeploymentParts,
): Promise<void> {
  const body = objectBody(manifest, undefined, context);
  const isSmall = options.bytes <= MEMORY_BYTES_MAX;
  const content = isSmall ? await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).bytes() : undefined;
  await bucket.put(manifest.key, content ?? Readable.from(checked(body)), options);
}

/** Keeps the last bytes back until the SHA-256 of all is known to be right: without them, nothing is stored. */
async function* checked(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let last: Uint8Array | undefined;
  for await (const part of body) {
    if (last) yield last;
    last = part;
  }
  if (last) yield last;
}

/** The headers of the plain object, with the mark where it has room. */
function plainHeaders({ headers, sha256 }: Pick<Manifest, "headers" | "sha256">): Record<string, string> {
  const kept = Object.entries(headers).filter(([name]) => KEPT_BY_S3.test(name));
  const marked = [...kept, [SHA256_MARK, sha256] as const];
  const prefix = "x-amz-meta-";
  const metadata = marked.filter(([name]) => name.startsWith(prefix));
  const bytes = metadata.reduce((sum, [name, value]) => sum + name.length - prefix.length + value.length, 0);
  return Object.fromEntries(bytes > METADATA_BYTES_MAX ? kept : marked);
}

/** Whether the bucket has the object with its type and headers: as it was adopted, marked, or as we just put it. */
function isEqual({ bytes, etag, headers }: Looked, shown: Manifest, isOurs = false): boolean {
  const wanted = plainHeaders(shown);
  const isAdopted = etag !== undefined && etag === etagOfHeaders(shown.headers);
  if (!isOurs && !isAdopted && wanted[SHA256_MARK] === undefined) return false;
  const textOf = (all: readonly (readonly [string, string])[]): string =>
    JSON.stringify(
      all
        .filter(([name]) => !(isAdopted && name === SHA256_MARK))
        .map(([name, value]) => [name, name === "x-amz-tagging" ? sortedTags(value) : value])
        .toSorted(),
    );
  const found = [...headers].filter(([name]) => KEPT_BY_S3.test(name));
  const isDescribed =
    headers.get("content-type") === shown.contentType && textOf(found) === textOf(Object.entries(wanted));
  return bytes === shown.bytes && isDescribed;
}

/** Stores show tags in an order and a coding of their own. */
function sortedTags(query: string): string {
  const tags = new URLSearchParams(query);
  tags.sort();
  return tags.toString();
}

function notKept(key: string): AgaroseError {
  const message = `the bucket took ${JSON.stringify(key)} and shows other bytes, another type or other headers: look at the object there`;
  return new AgaroseError("STORE_FAILED", message, { key });
}
