/** The backend of an S3 server whose one bucket is a deployment. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import {
  algorithmOfHeader,
  PART_LENGTHS,
  S3Error,
  type Backend,
  type BodyFile,
  type ChecksumAlgorithm,
  type CurrentObject,
  type KeptHeaders,
  type KeyList,
  type ListedObject,
  type ListedVersion,
  type NewObject,
  type ObjectCopy,
  type ObjectName,
  type OpenedObject,
  type Reading,
  type Received,
  type RemovalCondition,
  type S3ErrorCode,
  type Uploads,
  type Validators,
  type VersionList,
  type VersionName,
} from "@agarose/s3-server";
import { AgaroseError, toAgaroseError, type ErrorCode } from "@agarose/core";
import { shownBytes } from "@agarose/core/content";
import { isTombstone, parseKey, type Manifest, type ManifestRecord } from "@agarose/core/format";
import type { ByteRange } from "@agarose/core/http";
import { keepMsOf } from "../commit/history.ts";
import { secretsOf, shownManifest } from "../encryption/secrets-of.ts";
import type { ListedObject as StoredObject } from "../buckets/store.ts";
import { majorityEtag, recordOf } from "../listing/listed-object.ts";
import { mapOrdered, allOf } from "../listing/adaptive-pool.ts";
import { EarlyRead, getObject, objectBody } from "../objects/get-object.ts";
import { readManifest, readRecord, type Consistency, type ReadHow } from "../objects/manifests.ts";
import { putOverOrigin, readOrAdopt, removeOverOrigin, type UnreadAdoptions } from "../origin/read-through.ts";
import { copyOf } from "../objects/copy-object.ts";
import type { PutObject } from "../objects/put-object.ts";
import { removeObject } from "../objects/remove-object.ts";
import type { DeploymentParts } from "../parts.ts";
import type { KnownRegions } from "../regions/known-regions.ts";
import { fileSource, partsSource, type Source } from "../upload/file-source.ts";
import { headersOf } from "../upload/header-rules.ts";
import { describedAsStored, etagOfHeaders, headerOfEtag, headerText, MD5_HEADER } from "../upload/object-headers.ts";
import { BUCKET } from "./bucket.ts";
import { keysBehind, type FoundKey } from "./sorted-keys.ts";
import type { Spool } from "./spool.ts";
import { readVersion, versionsOf, type KeyVersion } from "./versions.ts";

/** The context of reads and writes. */
export type DeploymentContext = DeploymentParts & {
  readonly knownRegions: KnownRegions;
  /** Of reads and lists. What a write decides by is strong all the same. */
  readonly consistency: Consistency;
  /** Work that continues when a client disconnects. */
  readonly unread: UnreadAdoptions;
};

interface BackendOptions {
  readonly uploads: Uploads;
  readonly spool: Spool;
  /** Is told of a failure; it may call `use`. */
  readonly recover: (cause: unknown) => Promise<void>;
}

function howOf({ consistency, knownRegions }: DeploymentContext): ReadHow {
  return { consistency, knownRegions };
}

const MANIFESTS_AT_A_TIME = 16;

/** Serves a deployment. */
export class DeploymentBackend implements Backend {
  readonly uploads: Uploads;
  readonly recover: BackendOptions["recover"];
  readonly #spool: Spool;
  /** A deployment has no date, so the bucket is as old as the gateway. */
  readonly #startedMs: number;
  #context: DeploymentContext;

  constructor(context: DeploymentContext, { uploads, spool, recover }: BackendOptions) {
    this.uploads = uploads;
    this.recover = recover;
    this.#spool = spool;
    this.#startedMs = context.nowMs();
    this.#context = context;
  }

  /** Works on another opening of the deployment from the next call on. */
  use(context: DeploymentContext): void {
    this.#context = context;
  }

  buckets(): { name: string; createdMs: number }[] {
    return [{ name: BUCKET, createdMs: this.#startedMs }];
  }

  checkBucket(bucket: string): void {
    if (bucket !== BUCKET) throw new S3Error("NoSuchBucket", `The gateway has one bucket: ${BUCKET}.`);
  }

  async createBucket(bucket: string): Promise<void> {
    this.checkBucket(bucket);
    throw new S3Error("BucketAlreadyOwnedByYou", `The bucket ${BUCKET} is the deployment, and exists.`);
  }

  async deleteBucket(): Promise<void> {
    throw new S3Error("BucketNotEmpty", `The bucket ${BUCKET} is the deployment, and cannot be deleted here.`);
  }

  /** Lengths and ETags come from the manifests of the keys on a page. */
  list(_bucket: string, prefix: string, signal: AbortSignal): KeyList {
    const reading = { ...this.#context, signal };
    return {
      behind: (after) => keysBehind(after, prefix, reading),
      describe: (page: readonly FoundKey[]) => describePage(page, reading),
    };
  }

  keepsVersions(): boolean {
    const { keep } = this.#context.config;
    return keep.some(({ prefix }) => prefix === "") && keep.every(({ time }) => time > 0);
  }

  listVersions(_bucket: string, prefix: string, signal: AbortSignal): VersionList {
    const reading = { ...this.#context, signal };
    return {
      behind: (after) => keysBehind(after, prefix, reading, true),
      async describe(page: readonly FoundKey[]) {
        const described = mapOrdered(page, MANIFESTS_AT_A_TIME, async ({ key, plain }): Promise<ListedVersion[]> => {
          if (plain) return [{ ...describedPlain(plain), key, versionId: "null", isLatest: true }];
          return (await versionsOf(key, reading, howOf(reading))).map(listedVersion);
        });
        return (await allOf(described)).flat();
      },
    };
  }

  /** A read that fails once bytes are sent cuts the connection before the last of them. */
  async open({ key, versionId }: VersionName, { left: signal, rangeOf }: Reading): Promise<OpenedObject> {
    const context = { ...this.#context, signal };
    const early = new EarlyRead();
    const onFirst = (first: Manifest): void => {
      early.begin(first, () => rangeOf?.({ ...validatorsOf(first), bytes: shownBytes(first) }), context);
    };
    try {
      const how = howOf(context);
      // The object of the origin is the version `null` as long as no region knows the key.
      const isPlain =
        versionId === "null" && context.origin !== undefined && !(await readRecord(key, context, how)).record;
      const isCurrent = versionId === undefined || isPlain;
      const named = isCurrent ? undefined : await readVersion(key, versionId, context, how);
      const first = { ...how, ...(rangeOf && { onFirst }) };
      const manifest = named?.record ?? (await readOrAdopt(key, context, first, context.unread));
      const shown = await shownManifest(manifest, context.config);
      return {
        ...validatorsOf(manifest),
        ...answeredVersion(manifest, context),
        bytes: shown.bytes,
        contentType: shown.contentType,
        headers: withoutOwnMd5(shown.headers),
        content: (range) => objectBody(manifest, range, context),
        copyTo: (copy) => this.#copy(manifest, copy, named?.isLatest === false),
        send: (range, begin, response) => send(manifest, range, begin, response, context, early),
        close: () => early.stop(),
      };
    } catch (error) {
      early.stop();
      // A key that no object can have is as absent as any other.
      if (isImpossibleKey(error)) throw new S3Error("NoSuchKey", "The specified key does not exist.");
      throw error;
    }
  }

  checkWrite({ key }: ObjectName): void {
    parseKey(key);
  }

  /** Throws USAGE for what no answer can carry. */
  describe({ contentType, headers }: KeptHeaders): KeptHeaders {
    const texts = Object.entries(headers).map(([name, value]) => [name, headerText(value)]);
    return describedAsStored({ contentType: headerText(contentType), headers: Object.fromEntries(texts) });
  }

  receive(_bucket: string, received: Received, also?: ChecksumAlgorithm): Promise<BodyFile> {
    return this.#spool.receive(received, also);
  }

  discard(body: Pick<BodyFile, "path" | "bytes">): Promise<void> {
    return this.#spool.remove(body);
  }

  async put(object: NewObject, body: BodyFile): Promise<Validators> {
    const stored = await this.#storeNew(object, fileSource(body.path));
    await this.discard(body);
    return stored;
  }

  putParts(object: NewObject, parts: readonly BodyFile[]): Promise<Validators> {
    return this.#storeNew(object, partsSource(parts));
  }

  #storeNew({ key, etag, contentType, headers, onlyIf }: NewObject, source: Source): Promise<Validators> {
    const kept = headersOf(key, this.#context.config.headers, { ...headerOfEtag(etag), ...headers });
    const check = onlyIf && ((current: Manifest | undefined) => onlyIf(current && validatorsOf(current)));
    return this.#store({ key, source, contentType, headers: kept, force: false, ...(check && { onlyIf: check }) });
  }

  /** The ETag stays, and so do the lengths of parts, also where the copy has another checksum. */
  async #copy(manifest: Manifest, { onlyIf, checksums, ...copy }: ObjectCopy, isOlder: boolean): Promise<Validators> {
    const context = this.#context;
    const { headers } = await shownManifest(manifest, context.config);
    const kept = Object.entries(headers).filter(([name]) => name === MD5_HEADER || name === PART_LENGTHS);
    const check = onlyIf && ((current: Manifest | undefined) => onlyIf(current && validatorsOf(current)));
    const stored = {
      ...copy,
      isOlder,
      ...(checksums && { checksums: { ...Object.fromEntries(kept), ...checksums } }),
      ...(check && { onlyIf: check }),
    };
    return this.#store(await copyOf(manifest, stored, context));
  }

  async #store(object: PutObject): Promise<Validators> {
    const context = this.#context;
    if (object.onlyIf) await this.#adopt(object.key);
    const { version, modified, upload } = await putOverOrigin(object, context);
    const isEncrypted = (await secretsOf(context.config).forWriting(object.key)) !== undefined;
    return {
      ...validatorsOf({ version, modified, ...(!isEncrypted && { headers: object.headers }) }),
      ...answeredVersion({ key: object.key, upload }, context),
    };
  }

  hasOneVersion({ key }: ObjectName): boolean {
    return keepMsOf(key, this.#context.config) === 0;
  }

  /** `onlyIf` holds also when another writer comes between. */
  async remove({ key }: ObjectName, onlyIf: RemovalCondition | undefined): Promise<void> {
    const check = (newest: ManifestRecord | undefined): void => {
      if (newest && !isTombstone(newest)) onlyIf?.(currentOf(newest));
    };
    try {
      const context = this.#context;
      if (!onlyIf) await removeOverOrigin(key, context);
      else {
        await this.#adopt(key);
        await removeObject(key, context, { onlyIf: check });
      }
    } catch (error) {
      if (!isImpossibleKey(error)) throw error;
    }
  }

  /** A condition is on the object that clients see, be it in the regions or at the origin. */
  async #adopt(key: string): Promise<void> {
    const context = this.#context;
    if (!context.origin) return;
    await readOrAdopt(key, context).catch((error: unknown) => {
      if (toAgaroseError(error).code !== "OBJECT_NOT_FOUND") throw error;
    });
  }

  errorOf(cause: unknown, isRead?: boolean): S3Error {
    return s3ErrorOf(cause, isRead);
  }
}

/**
 * Describes the objects of a page: by one manifest each, where a majority has just listed its ETag, else by a read of a
 * majority. Objects that only the origin has are described by its listing.
 */
async function describePage(page: readonly FoundKey[], reading: DeploymentContext): Promise<readonly ListedObject[]> {
  const isEventual = reading.consistency === "eventual";
  const described = mapOrdered(page, MANIFESTS_AT_A_TIME, async (found): Promise<ListedObject | undefined> => {
    const { key, group, plain } = found;
    try {
      if (plain) return { key, ...describedPlain(plain) };
      const etag = group && !isEventual ? majorityEtag(group, reading) : undefined;
      const current = etag === undefined ? undefined : await recordOf(etag, key, reading);
      const manifest = current && !isTombstone(current) ? current : await readManifest(key, reading, howOf(reading));
      return { key, ...currentOf(manifest) };
    } catch (error) {
      // It was removed after the keys were listed.
      if (toAgaroseError(error).code === "OBJECT_NOT_FOUND") return undefined;
      throw error;
    }
  });
  return (await allOf(described)).filter((object) => object !== undefined);
}

function describedPlain({ bytes, modifiedMs, etag = '""' }: StoredObject): CurrentObject {
  return { bytes, modifiedMs, etag };
}

/** Sends each part when the next one is there, and the last one when all are verified. */
async function send(
  manifest: Manifest,
  range: ByteRange | undefined,
  begin: () => void,
  response: ServerResponse,
  context: DeploymentContext,
  early: EarlyRead,
): Promise<void> {
  let last: Uint8Array | undefined;
  const write = async (part: Uint8Array): Promise<void> => {
    const before = last;
    last = part;
    if (before === undefined) return;
    if (!response.headersSent) begin();
    if (!response.write(before)) await once(response, "drain", { signal: context.signal });
  };
  await getObject(manifest, range, write, context, { early });
  if (!response.headersSent) begin();
  response.end(last);
}

function listedVersion({ record, versionId, isLatest }: KeyVersion): ListedVersion {
  const common = { key: record.key, versionId, isLatest };
  if (!isTombstone(record)) return { ...currentOf(record), ...common };
  return { etag: "", modifiedMs: Date.parse(record.modified), bytes: undefined, ...common };
}

/** S3 answers no id where a bucket keeps no versions. */
function answeredVersion(
  { key, upload }: Pick<Manifest, "key" | "upload">,
  { config }: DeploymentContext,
): Pick<Validators, "versionId"> {
  return keepMsOf(key, config) > 0 ? { versionId: upload } : {};
}

type Tagged = Pick<Manifest, "version"> & { readonly headers?: Manifest["headers"] };

function currentOf(manifest: Manifest): CurrentObject {
  return { bytes: shownBytes(manifest), ...validatorsOf(manifest) };
}

/** Returns the ETag and time of an object. */
function validatorsOf(manifest: Tagged & Pick<Manifest, "modified">): Validators {
  return { etag: etagOf(manifest), modifiedMs: Date.parse(manifest.modified) };
}

/**
 * Returns the ETag of an object, with its quotes, as S3 has it. Of what is encrypted, or another command has put, it is
 * the version with the suffix of an upload in parts, so that no client takes it for the MD5.
 */
function etagOf({ version, headers = {} }: Tagged): string {
  return etagOfHeaders(headers) ?? `"${version}-1"`;
}

/** Without the MD5 of an object whose client has not asked for that checksum. */
function withoutOwnMd5(headers: Manifest["headers"]): Manifest["headers"] {
  const algorithms = Object.keys(headers).filter((name) => algorithmOfHeader(name) !== undefined);
  if (algorithms.length === 1 && headers["x-amz-checksum-type"] !== undefined) return headers;
  const { [MD5_HEADER]: _md5, ...others } = headers;
  return others;
}

const CODES: Partial<Record<ErrorCode, S3ErrorCode>> = {
  OBJECT_NOT_FOUND: "NoSuchKey",
  KEY_INVALID: "InvalidArgument",
  USAGE: "InvalidArgument",
  KEY_TOO_LONG: "KeyTooLongError",
  RANGE_UNSATISFIABLE: "InvalidRange",
  REPLACED_MEANWHILE: "OperationAborted",
  // A client repeats what failed with 503, and each of these may pass.
  ABORTED: "ServiceUnavailable",
  DISK_FULL: "ServiceUnavailable",
  BUSY: "ServiceUnavailable",
  // A region refused the keys of the gateway. The client's own were right, so this is no AccessDenied.
  CREDENTIALS_REFUSED: "ServiceUnavailable",
  NO_QUORUM: "ServiceUnavailable",
  NO_SOURCE: "ServiceUnavailable",
  // As in a rotation, until this machine has the new configuration.
  KEYS_OUTDATED: "ServiceUnavailable",
  MANIFEST_UNTRUSTED: "ServiceUnavailable",
  REGION_MISPLACED: "ServiceUnavailable",
  NOT_ENOUGH_CHUNKS: "ServiceUnavailable",
  // The origin does not answer, so it may have the key.
  SOURCE_FAILED: "ServiceUnavailable",
  READ_TIMEOUT: "ServiceUnavailable",
  READ_UNCERTAIN: "ServiceUnavailable",
  STORE_FAILED: "ServiceUnavailable",
  WRITE_UNCERTAIN: "ServiceUnavailable",
};

/** Codes for an object that a client sends, and for a manifest that a region holds. */
const TOO_LARGE: ReadonlySet<ErrorCode> = new Set(["CODE_INVALID", "MANIFEST_TOO_LARGE"]);

/**
 * Returns the S3Error of `cause`. Its message has our own code, which `reference/errors.md` explains.
 *
 * @param isRead whether the client has sent no object.
 */
function s3ErrorOf(cause: unknown, isRead = false): S3Error {
  if (cause instanceof S3Error) return cause;
  const { code, message, details } = cause instanceof AgaroseError ? cause : toAgaroseError(cause);
  // No client retries what is too large, and a region's manifest may be right the next time.
  const isTooLarge = TOO_LARGE.has(code) && "max" in details && !isRead;
  return new S3Error(isTooLarge ? "EntityTooLarge" : (CODES[code] ?? "InternalError"), `${code}: ${message}`);
}

/** Whether no object can have this key, so that it is as absent as any other. */
function isImpossibleKey(cause: unknown): boolean {
  return cause instanceof AgaroseError && (cause.code === "KEY_INVALID" || cause.code === "KEY_TOO_LONG");
}
