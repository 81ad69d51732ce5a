/** A deployment, and what is done with its objects. */
import { AgaroseError, type Clock, type Random } from "@agarose/core";
import type { Manifest, ManifestRecord } from "@agarose/core/format";
import type { ByteRange } from "@agarose/core/http";
import type { S3StoreOptions } from "./buckets/s3-client.ts";
import type { Store } from "./buckets/store.ts";
import { replacedMeanwhile } from "./commit/commit.ts";
import { configOfFields, loadConfig } from "./config/config.ts";
import { shownManifest } from "./encryption/secrets-of.ts";
import { verifyWithHistory } from "./history/kept-versions.ts";
import { listVersions, type Versions } from "./history/list-versions.ts";
import { findRestorable, restoreVersion, type RestoreWish } from "./history/restore-object.ts";
import { modifiedOf } from "./listing/key-groups.ts";
import { KeyListing, liveGroups } from "./listing/keys.ts";
import type { Shard } from "./listing/shard.ts";
import {
  applyKeysToObjects,
  type ApplyKeysOptions,
  type ApplyKeysOutcome,
  type ApplyKeysTotals,
} from "./maintenance/apply-keys.ts";
import { expireObjects, type ExpireOutcome, type ExpireTotals } from "./maintenance/expire-objects.ts";
import { collectGarbage } from "./maintenance/gc/collect-garbage.ts";
import type { GarbageReport, GarbageSearch, GarbageUpload } from "./maintenance/gc/search.ts";
import {
  recodeObjects,
  type RecodeOptions,
  type RecodeOutcome,
  type RecodeTotals,
} from "./maintenance/recode-objects.ts";
import { repairObjects, type RepairTotals } from "./maintenance/repair-objects.ts";
import type { DeepOptions } from "./maintenance/scrub/deep-reads.ts";
import { scrubObjects } from "./maintenance/scrub/scrub-objects.ts";
import type { Totals as ScrubTotals } from "./maintenance/scrub/totals.ts";
import { verifyObjects, type VerifyTotals } from "./maintenance/verify-objects.ts";
import { copyOf } from "./objects/copy-object.ts";
import { objectBody } from "./objects/get-object.ts";
import type { Consistency } from "./objects/manifests.ts";
import type { PutObject, PutResult } from "./objects/put-object.ts";
import { removeObject, type RemoveResult } from "./objects/remove-object.ts";
import type { ObjectVerdict } from "./objects/verify-object.ts";
import type { AdoptOutcome } from "./origin/adopt-object.ts";
import { adoptObjects, type AdoptOptions, type AdoptTotals } from "./origin/adopt-objects.ts";
import {
  releaseObjects,
  type ReleaseOptions,
  type ReleaseOutcome,
  type ReleaseTotals,
} from "./origin/release-objects.ts";
import { putOverOrigin, readOrAdopt, removeOverOrigin } from "./origin/read-through.ts";
import { handleUploads, type UploadsOptions } from "./page-uploads/handle-uploads.ts";
import { closeParts, openParts, type DeploymentParts } from "./parts.ts";
import type { RepairOutcome } from "./repair/repair-outcome.ts";
import { syncFolder } from "./sync/sync-folder.ts";
import type { SyncEnd, SyncOptions, SyncOutcome, SyncTotals } from "./sync/sync-job.ts";
import { headersOf } from "./upload/header-rules.ts";
import { bytesSource, fileSource, type Source } from "./upload/file-source.ts";

/** How a deployment is opened. */
export interface DeploymentOptions {
  /** One for each region of the configuration, in its order. Default: its buckets, by S3. */
  readonly stores?: readonly Store[];
  /** Ends everything that is under way. Default: nothing does. */
  readonly signal?: AbortSignal;
  /** Timers of waits and deadlines. Default: the system's. */
  readonly clock?: Clock;
  /** The time of day in milliseconds since 1970, for `modified`. Default: `Date.now`. */
  readonly nowMs?: () => number;
  /** Spreads requests and waits. Default: `Math.random`. */
  readonly random?: Random;
  /** The keys that `list` and all walks over keys see, so that several processes share the work. Default: all. */
  readonly shard?: Shard;
}

/** Content for `put`: text as UTF-8, bytes, the file at a path, or a source that can be read more than once. */
export type Content = string | Uint8Array | { readonly file: string } | Source;

/** How an object is stored. */
export interface PutOptions {
  /** Default: `application/octet-stream`. */
  readonly contentType?: string;
  /** Response headers of the object, such as `cache-control`, beside those of the configuration. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether to store it compressed where that saves a tenth. Default: as the configuration says. */
  readonly compress?: PutObject["compress"];
}

/** How an object is read. */
export interface ReadOptions {
  /** Default: `strong`, so that nothing older is read than what was acknowledged before. */
  readonly consistency?: Consistency;
}

/** Information about an object without reading its content. */
export interface ObjectInfo {
  readonly key: string;
  /** Of its content. */
  readonly bytes: number;
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>>;
  /** ISO 8601, UTC. */
  readonly modified: string;
  /** Another content has another one: the first 32 hex digits of its SHA-256. */
  readonly version: string;
}

/** How thoroughly to look at objects. */
export interface Quick {
  /** Whether to trust listings in place of reading every byte. Default: false. */
  readonly quick?: boolean;
}

/** Whether to change anything. */
export interface DryRun {
  /** Default: false. */
  readonly dryRun?: boolean;
}

/** A key that `list` has found. */
export interface ListedKey {
  readonly key: string;
  /** When the newest manifest was written by the clock of its region: ISO 8601, UTC. */
  readonly modified: string;
}

const DAY_MS = 86_400_000;
const S3_OPTIONS: S3StoreOptions = { attempts: 3 };

/**
 * Opens a deployment. Nothing is requested before the first read or write.
 *
 * @param config the path of a configuration file, or what such a file holds.
 * @throws CONFIG_INVALID naming the field, or CODE_INVALID.
 */
export async function openDeployment(
  config: string | object,
  { signal = new AbortController().signal, ...ports }: DeploymentOptions = {},
): Promise<Deployment> {
  const read = typeof config === "string" ? await loadConfig(config) : configOfFields(config, "the configuration");
  return new Deployment(openParts(read, S3_OPTIONS, signal, ports));
}

/** An open deployment. Its methods may run at the same time, and beside other programs that use the same buckets. */
export class Deployment {
  readonly #parts: DeploymentParts;

  /** `openDeployment` is the usual way to one. */
  constructor(parts: DeploymentParts) {
    this.#parts = parts;
  }

  /**
   * Stores an object. Readers see it once a majority of the regions has its manifest, which is when this resolves.
   *
   * @throws as `putOverOrigin` does.
   */
  put(key: string, content: Content, { contentType, headers: own, compress }: PutOptions = {}): Promise<PutResult> {
    const type = contentType ?? "application/octet-stream";
    const headers = headersOf(key, this.#parts.config.headers, own);
    const object = { key, source: sourceOf(content), contentType: type, headers, force: false, examine: true };
    return putOverOrigin({ ...object, ...(compress && { compress }) }, this.#parts);
  }

  /**
   * Stores the object at `from` under the key `to`, with its type and headers. The copy may have another code or
   * secret. It throws as `stat` and `putOverOrigin` do, and NOT_ENOUGH_CHUNKS where the object cannot be read.
   *
   * @returns what was copied, and how it was stored.
   */
  async copy(from: string, to: string): Promise<{ readonly copied: ObjectInfo; readonly stored: PutResult }> {
    const manifest = await readOrAdopt(from, this.#parts);
    const stored = await putOverOrigin(await copyOf(manifest, { key: to }, this.#parts), this.#parts);
    return { copied: infoOf(await shownManifest(manifest, this.#parts.config)), stored };
  }

  /** Returns information about an object. Throws OBJECT_NOT_FOUND, and as `readOrAdopt` does. */
  async stat(key: string, options: ReadOptions = {}): Promise<ObjectInfo> {
    return infoOf(await shownManifest(await readOrAdopt(key, this.#parts, options), this.#parts.config));
  }

  /**
   * Opens an object, or a range of its bytes, which ends with the object as a range of HTTP does. The stream of the
   * body errors as `getObject` does, and never ends short.
   *
   * @throws RANGE_UNSATISFIABLE where the range has no byte of the object, and as `stat` does.
   */
  async get(
    key: string,
    { range, ...options }: ReadOptions & { readonly range?: ByteRange } = {},
  ): Promise<ObjectInfo & { readonly body: ReadableStream<Uint8Array> }> {
    const manifest = await readOrAdopt(key, this.#parts, options);
    const info = infoOf(await shownManifest(manifest, this.#parts.config));
    return { ...info, body: objectBody(manifest, range && rangeWithin(range, info), this.#parts) };
  }

  /**
   * The keys that begin with `prefix`, in the order of their encoded names.
   *
   * @throws NO_QUORUM at the end when so few regions answered that keys may be missing.
   */
  async *list(prefix = ""): AsyncGenerator<ListedKey> {
    const listing = new KeyListing(prefix, this.#parts);
    for await (const group of liveGroups(listing, this.#parts)) {
      yield { key: group.key, modified: modifiedOf(group) };
    }
    listing.requireComplete();
  }

  /**
   * Removes an object; undefined when there is none. Throws as `removeOverOrigin` does.
   *
   * @param ifSame remove it only while it is the one that `stat` or `get` has described; REPLACED_MEANWHILE otherwise.
   */
  remove(key: string, ifSame?: Pick<ObjectInfo, "version" | "modified">): Promise<RemoveResult | undefined> {
    if (!ifSame) return removeOverOrigin(key, this.#parts);
    const onlyIf = (newest: ManifestRecord | undefined): void => {
      const { version, modified } = (newest ?? {}) as Partial<Manifest>;
      if (version !== ifSame.version || modified !== ifSame.modified) throw replacedMeanwhile(key, {}, "it stays");
    };
    return removeObject(key, this.#parts, { onlyIf });
  }

  /** Checks every byte that is stored of an object, or with `quick` its listings. Throws only when aborted. */
  verify(key: string, { quick = false }: Quick = {}): Promise<ObjectVerdict> {
    return verifyWithHistory(key, this.#parts, quick);
  }

  /**
   * Verifies the objects whose keys begin with `prefix`, one verdict each. The sums are returned at the end. It throws
   * as `verifyObjects` does.
   */
  verifyAll(prefix = "", { quick = false }: Quick = {}): AsyncGenerator<ObjectVerdict, VerifyTotals> {
    return outcomesOf(this.#parts, (onVerdict, parts) => verifyObjects({ prefix, quick, onVerdict }, parts));
  }

  /**
   * Repairs the objects whose keys begin with `prefix`, one outcome each: first those that wait in the repair queue. A
   * failure is an outcome too. The sums are returned at the end. It throws as `repairObjects` does.
   *
   * @param options.dryRun whether to report what is damaged in place of repairing it.
   */
  repair(
    prefix = "",
    { quick = false, dryRun = false }: Quick & DryRun = {},
  ): AsyncGenerator<RepairOutcome, RepairTotals> {
    return outcomesOf(this.#parts, (onOutcome, parts) => repairObjects({ prefix, quick, dryRun, onOutcome }, parts));
  }

  /**
   * Stores the plain objects of `origin` whose names begin with `prefix`, where the regions know nothing of their keys,
   * one outcome each. Of those that are known there is none, and a failure is an outcome too. The sums are returned at
   * the end. It throws as `adoptObjects` does.
   */
  adopt(
    prefix = "",
    { dryRun = false, ...limits }: DryRun & Pick<AdoptOptions, "rate" | "jobs"> = {},
  ): AsyncGenerator<AdoptOutcome, AdoptTotals> {
    return outcomesOf(this.#parts, (onOutcome, parts) => adoptObjects({ ...limits, prefix, dryRun, onOutcome }, parts));
  }

  /**
   * The way back: writes the objects whose keys begin with `prefix` into the bucket of `origin` as plain objects, one
   * outcome each. Of those that are equal there is none, and a failure is an outcome too. The sums are returned at the
   * end. It throws as `releaseObjects` does.
   *
   * @param options.bucket another bucket at that endpoint, in place of the one that `origin` names.
   */
  release(
    prefix = "",
    { dryRun = false, ...more }: DryRun & Pick<ReleaseOptions, "bucket" | "jobs"> = {},
  ): AsyncGenerator<ReleaseOutcome, ReleaseTotals> {
    return outcomesOf(this.#parts, (onOutcome, parts) => releaseObjects({ ...more, prefix, dryRun, onOutcome }, parts));
  }

  /** The versions of a key that regions hold or `keep` keeps, the newest first. It throws as `listVersions` does. */
  versions(key: string): Promise<Versions> {
    return listVersions(key, this.#parts);
  }

  /**
   * Puts a version again that `keep` keeps: the one that is named by its version or generation, or else the newest
   * that is not the current one. It throws as `findRestorable` and `restoreVersion` do.
   */
  async restore(key: string, wish: Pick<RestoreWish, "version"> = {}): Promise<PutResult> {
    return restoreVersion(await findRestorable(key, wish, this.#parts), this.#parts);
  }

  /**
   * Removes the objects that are older than `expire` in the configuration allows, one outcome each. A failure is an
   * outcome too. The sums are returned at the end. It throws as `expireObjects` does.
   *
   * @param options.dryRun whether to report what is due in place of removing it.
   */
  expire({ dryRun = false }: DryRun = {}): AsyncGenerator<ExpireOutcome, ExpireTotals> {
    return outcomesOf(this.#parts, (onOutcome, parts) => expireObjects({ dryRun, onOutcome }, parts));
  }

  /**
   * Finds uploads that no manifest names, one outcome each: a first run marks them, and one that finds them marked for
   * long enough deletes them. The sums are returned at the end. It throws as `collectGarbage` does.
   *
   * @param options.dryRun whether only to look.
   * @param options.olderThanMs how long a mark must have been there. Default: a day.
   */
  gc(
    prefix = "",
    { dryRun = false, olderThanMs = DAY_MS }: DryRun & Partial<Pick<GarbageSearch, "olderThanMs">> = {},
  ): AsyncGenerator<GarbageUpload, GarbageReport> {
    return outcomesOf(this.#parts, async (onUpload, parts) => {
      // Objects of a different deployment or region must not look like garbage.
      if (!dryRun) await parts.fence?.check();
      return collectGarbage({ prefix, removes: !dryRun, olderThanMs, onUpload }, parts);
    });
  }

  /**
   * Walks once over the keys that begin with `prefix`: it finds damage by listings, reads what `deep` names in full,
   * and repairs first what is nearest to being lost, one outcome each. The sums are returned at the end. It throws as
   * `scrubObjects` does.
   */
  scrub(prefix = "", deep: DeepOptions = {}): AsyncGenerator<RepairOutcome, ScrubTotals> {
    return outcomesOf(this.#parts, (onRepair, parts) => scrubObjects({ prefix, deep, onRepair }, parts));
  }

  /**
   * Stores the objects again whose code or placement is not what the configuration says, one outcome each. Of those
   * that are as they should be there is none, and a failure is an outcome too. The sums are returned at the end.
   *
   * @throws LAYOUT_UNSAFE, and NO_QUORUM at the end when so few regions could be listed that keys may be missing.
   */
  recode(prefix = ""): AsyncGenerator<RecodeOutcome, RecodeTotals> {
    return this.#recode({ name: "recode", prefix });
  }

  /**
   * Moves all objects to where the configuration wants them, whose regions may be new, drained or renamed: `recode`,
   * and every region gets the manifests that it lacks. It throws as `recode` does.
   */
  migrate(): AsyncGenerator<RecodeOutcome, RecodeTotals> {
    return this.#recode({ name: "migrate", moves: true });
  }

  /**
   * Has the signing key of the configuration sign the objects whose keys begin with `prefix`, and its first secret
   * encrypt their data keys, one outcome each: `current` where that was so. A failure is an outcome too. The sums are
   * returned at the end. It throws as `applyKeysToObjects` does.
   */
  applyKeys(
    prefix = "",
    options: Pick<ApplyKeysOptions, "vouches" | "acceptsNewest" | "dryRun"> = {},
  ): AsyncGenerator<ApplyKeysOutcome, ApplyKeysTotals> {
    return outcomesOf(this.#parts, (onOutcome, parts) => applyKeysToObjects({ ...options, prefix, onOutcome }, parts));
  }

  /**
   * Makes `to` equal to `from`, one outcome for each key that needs something: a folder and the keys below a prefix, in
   * either direction. A failure is an outcome too, and nothing is removed unless `delete` says so. The sums are
   * returned at the end. It throws as `syncFolder` does.
   */
  sync(from: SyncEnd, to: SyncEnd, options: SyncOptions = {}): AsyncGenerator<SyncOutcome, SyncTotals> {
    return outcomesOf(this.#parts, (report, parts) => syncFolder(from, to, options, report, parts));
  }

  /**
   * Answers the requests of `putObject` of `@agarose/sw/upload`: mount it at `/v1/uploads`. The page gets URLs by
   * which it may store the chunks of one object, and no key.
   *
   * @throws CONFIG_INVALID naming the option.
   */
  uploads(options: UploadsOptions): (request: Request) => Promise<Response> {
    return handleUploads(options, this.#parts);
  }

  /** Closes the connections. What is under way fails. */
  close(): void {
    closeParts(this.#parts);
  }

  #recode(options: Pick<RecodeOptions, "name" | "prefix" | "moves">): AsyncGenerator<RecodeOutcome, RecodeTotals> {
    return outcomesOf(this.#parts, (onOutcome, parts) => recodeObjects({ ...options, onOutcome }, parts));
  }
}

function rangeWithin({ start, end }: ByteRange, { key, bytes }: ObjectInfo): ByteRange {
  const isRange = Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start < end;
  if (isRange && start < bytes) return { start, end: Math.min(end, bytes) };
  throw new AgaroseError(
    "RANGE_UNSATISFIABLE",
    `${start} to ${end} has no byte of ${JSON.stringify(key)}, which has ${bytes}: give whole numbers with ` +
      "0 <= start < end, and a start below the length",
    { start, end, bytes },
  );
}

function infoOf({ key, bytes, contentType, headers, modified, version }: Manifest): ObjectInfo {
  return { key, bytes, contentType, headers, modified, version };
}

function sourceOf(content: Content): Source {
  if (typeof content === "string") return bytesSource(new TextEncoder().encode(content));
  if (content instanceof Uint8Array) return bytesSource(content);
  return "file" in content ? fileSource(content.file) : content;
}

/**
 * Passes on what `run` gives to `emit`, and returns what it resolves to. It waits for the reader after each item. A
 * reader who leaves aborts the signal of the context that `run` gets, and the walk has ended once the reader continues.
 */
export async function* outcomesOf<T, R, C extends { readonly signal: AbortSignal }>(
  context: C,
  run: (emit: (item: T) => Promise<void>, context: C) => Promise<R>,
): AsyncGenerator<T, R, undefined> {
  const left = new AbortController();
  const { readable, writable } = new TransformStream<T, T>();
  const writer = writable.getWriter();
  const ended = run((item) => writer.write(item), {
    ...context,
    signal: AbortSignal.any([context.signal, left.signal]),
  });
  const closed = ended.then(
    () => writer.close(),
    (error: unknown) => writer.abort(error),
  );
  closed.catch(() => {});
  try {
    yield* readable;
    return await ended;
  } finally {
    left.abort(new AgaroseError("ABORTED", "the reader of the outcomes left"));
    await ended.catch(() => {});
  }
}
