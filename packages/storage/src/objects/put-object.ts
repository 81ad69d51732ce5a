/**
 * Puts one object: hash where that may save the rest, claim, encode, upload, and last the manifest, which makes the new
 * version visible (docs/reference/format.md, "Writing").
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { shownBytes } from "@agarose/core/content";
import {
  blockBytesOf,
  HASH_BYTES,
  isTombstone,
  PAGE_BYTES_MAX,
  pageStripesOf,
  parseKey,
  sealManifest,
  type Gzip,
  type Manifest,
  type ManifestDraft,
  type ManifestRecord,
} from "@agarose/core/format";
import type { Config } from "../config/config.ts";
import { currentNames } from "../buckets/region-names.ts";
import { findGoneChunks } from "./chunk-listing.ts";
import {
  commitAgainIfNewest,
  commitRecord,
  completeRecord,
  type Commit,
  type CommitInput,
  type RegionProblem,
} from "../commit/commit.ts";
import type { BatchClaim } from "../commit/batches.ts";
import { keepMsOf } from "../commit/history.ts";
import { emptySurvey, surveyRegions, type Survey } from "../regions/region-survey.ts";
import { enqueueRepair } from "../commit/repair-queue.ts";
import { majorityOf, type WriteContext } from "../commit/write-context.ts";
import { settledSurvey } from "../regions/settled.ts";
import { encryptSource } from "../encryption/encrypted-source.ts";
import { secretsOf, shownManifest } from "../encryption/secrets-of.ts";
import { namesDrained, keptRegions, layoutOf } from "../layout/object-layout.ts";
import { listedSurvey } from "../listing/listed-object.ts";
import { nodeSha256 } from "./sha256.ts";
import { compressSource, mayCompress, type CompressionWish } from "../upload/compressed-source.ts";
import { examineContent } from "../upload/examined-content.ts";
import {
  hashFile,
  readWhole,
  type FileHash,
  type FileState,
  type Source,
  type SourceReader,
} from "../upload/file-source.ts";
import type { DeploymentParts } from "../parts.ts";
import { describedAsStored, isChecksum } from "../upload/object-headers.ts";
import { uploadChunks, type UploadedChunks, type UploadInput } from "../upload/upload.ts";
import { checkLeafLists } from "../leaf-lists/leaf-lists.ts";
import { LeafListUpload } from "../leaf-lists/leaf-list-upload.ts";

/** The object to store, and how. */
export interface PutObject {
  readonly key: string;
  readonly source: Source;
  readonly contentType: string;
  /** Response headers of the object (`HEADERS_ALLOWED`). */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether to upload what is stored already. */
  readonly force: boolean;
  /**
   * Whether to look through the content for what browsers cannot know of it (`examineContent`). What a client of the
   * gateway says of its object stands as it is.
   */
  readonly examine?: boolean;
  /**
   * Throws when the object must not replace `current`; undefined is not an object. `newest` is that or a
   * tombstone. With it, the put is committed only if no other writer comes between.
   */
  readonly onlyIf?: (current: Manifest | undefined, newest: ManifestRecord | undefined) => void;
  /**
   * The caller's view of the key, the newest of it in a majority. As with `onlyIf`, the put is committed only if
   * no other writer comes between.
   */
  readonly survey?: Survey;
  /**
   * Whether no region listed a manifest of the key shortly before, which saves a look at each. What has come since is
   * seen all the same.
   */
  readonly isAbsent?: boolean;
  /** The ETag by which all regions listed its manifest shortly before. Then one of them is read in place of all. */
  readonly etag?: string | undefined;
  /** A batch's claim to its key. Default: it looks at the key, and claims a generation of it. */
  readonly claim?: BatchClaim | undefined;
  /** Rejects when the content is not to be stored any more. It is called right before a manifest of it is written. */
  readonly beforeCommit?: (() => Promise<void>) | undefined;
  /** When its content was read, by ISO 8601, of what others may have replaced since. Default: when it is claimed. */
  readonly asOf?: string | undefined;
  /** Whether to compress it. Default: as the configuration says. */
  readonly compress?: Config["compress"];
  /** Receives counts of file bytes hashed and of chunk bytes uploaded. */
  readonly onBytes?: ((pass: "hash" | "upload", bytes: number) => void) | undefined;
}

/** A version that is rewritten stays compressed where `put --compress` has asked for it. */
export function asBefore({ gzip }: Manifest): Pick<PutObject, "compress"> {
  return gzip ? { compress: "all" } : {};
}

type PutParts = WriteContext & Pick<DeploymentParts, "encoder">;

/** The outcome of `putObject`. */
export interface PutResult {
  readonly key: string;
  readonly version: string;
  /** In the names of its chunks. */
  readonly upload: string;
  readonly generation: number;
  readonly bytes: number;
  readonly sha256: string;
  /** When it was put: ISO 8601, UTC. */
  readonly modified: string;
  /** The region of each chunk, by the length that is stored: that of an encrypted object is not its content's. */
  readonly placement: readonly string[];
  /**
   * - `completed`: the chunks were there, and regions that lacked the manifest took it.
   * - `kept`: the object was there in a majority, and the other regions did not answer.
   * - `unchanged`: every region has this very manifest.
   */
  readonly outcome: "stored" | "completed" | "kept" | "unchanged";
  /** Regions that do not have the manifest, or did not answer: a minority. */
  readonly regionsWithoutManifest: readonly RegionProblem[];
  /** Chunks that their regions did not take; `agarose repair` makes them. */
  readonly missing: readonly number[];
}

/** S3 takes no longer object. */
const CHUNK_BYTES_MAX = 5 * 1024 ** 4;

/**
 * Stores `given`. Until the manifest is in a majority of the regions, readers may see the version before.
 *
 * @throws KEY_INVALID, KEY_TOO_LONG, USAGE when a header cannot be served, CODE_INVALID, LAYOUT_UNSAFE,
 * FILE_UNREADABLE, CODING_INVALID, MANIFEST_TOO_LARGE, MANIFEST_UNTRUSTED when a majority holds what no trusted key has
 * signed, NO_QUORUM, STORE_FAILED, REPLACED_MEANWHILE, WRITE_UNCERTAIN, CREDENTIALS_REFUSED or ABORTED.
 */
export async function putObject(given: PutObject, context: PutParts): Promise<PutResult> {
  const { config, signal } = context;
  parseKey(given.key);
  const described = { ...given, ...describedAsStored(given) };
  // Refuses a layout that is unsafe before anything else happens.
  layoutOf(config, given.key, 0);
  context.fence?.prepare();
  const file = await given.source.open();
  try {
    const examined = given.examine && (await examineContent(file, described, given.key, signal));
    const object = { ...described, ...examined };
    // First of all, because refused credentials show early.
    const survey = await surveyFor(object, context);
    const { newest } = survey;
    object.onlyIf?.(newest && !isTombstone(newest) ? newest : undefined, newest);
    // A too long file is refused before it is hashed, for minutes perhaps.
    const state = await file.state?.();
    if (state && !mayCompress(wishOf(object, config), state.bytes)) draftOf(object, state.bytes, config);
    const secret = await secretsOf(config).forWriting(object.key);
    const copies = object.onlyIf !== undefined || object.survey !== undefined;
    const { onBytes } = given;
    const { asOf, beforeCommit } = object;
    const storing = { copies, claim: copies ? undefined : object.claim, asOf, beforeCommit, onBytes };
    const onHashed = (bytes: number): void => onBytes?.("hash", bytes);
    const unread = secret ? undefined : await stateOfUnstored(file, object, newest, context);
    if (unread) {
      const { draft } = draftOf(object, unread.bytes, config);
      return await storeNew(draft, survey, { file, expected: unread, onHashed }, storing, context);
    }
    const plain = file.known ?? (await hashFile(file, signal, onHashed));
    const content = { ...object, ...plain };
    const compress = memoized(() => compressSource(file, plain, wishOf(object, config), signal));
    // Only content that compresses is stored compressed.
    const isKnown = newest && !isTombstone(newest) && newest.gzip && shownBytes(newest) === plain.bytes;
    const isCompressed = isKnown ? mayCompress(wishOf(object, config), plain.bytes) : (await compress()) !== undefined;
    const coding = { isEncrypted: secret !== undefined, isCompressed };
    const kept = object.force ? undefined : await keepStored(content, coding, survey, context);
    if (kept) return { ...kept, ...plain };
    const compressed = await compress();
    const whole = compressed ?? { file, hash: plain };
    const encrypted = secret && (await encryptSource(whole.file, whole.hash, content, secret, signal));
    const stored = encrypted ?? whole;
    const { draft, inline } = draftOf(object, stored.hash.bytes, config);
    const coded = {
      ...(encrypted && { ...ENCRYPTED, encryption: encrypted.encryption }),
      ...(compressed && { gzip: encrypted ? withoutHash(compressed.gzip) : compressed.gzip }),
      ...(inline && { inline: await readWhole(stored.file, object.key, stored.hash) }),
    };
    const input = { file: stored.file, expected: stored.hash.sha256 };
    return { ...(await storeNew({ ...draft, ...coded }, survey, input, storing, context)), ...plain };
  } catch (error) {
    throw signal.aborted ? new AgaroseError("ABORTED", `the put of ${JSON.stringify(given.key)} was aborted`) : error;
  } finally {
    await file.close();
  }
}

/** The public fields in the manifest of any encrypted object. */
const ENCRYPTED = { contentType: "application/octet-stream", headers: {} };

/** The properties of an encrypted object have the SHA-256 of its content. */
function withoutHash({ sha256: _sha256, ...gzip }: Gzip): Gzip {
  return gzip;
}

function wishOf({ key, headers, compress }: PutObject, config: Config): CompressionWish {
  return { key, headers, compress: compress ?? config.compress, stripeBytes: config.stripeBytes };
}

function memoized<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

async function surveyFor(
  { key, onlyIf, survey, isAbsent, etag, claim }: PutObject,
  context: WriteContext,
): Promise<Survey> {
  if (survey) return survey;
  // A condition that what only a minority holds meets or fails would be one by what nobody has acknowledged.
  if (onlyIf) return settledSurvey(key, context);
  if (claim) return claim.survey;
  if (isAbsent) return emptySurvey(context.stores);
  const listed = etag === undefined ? undefined : await listedSurvey(etag, key, context);
  return listed ?? surveyRegions(key, context);
}

/** Decisions of a put before it claims a generation. */
export type Draft = Omit<
  ManifestDraft,
  "generation" | "modified" | "upload" | "hashes" | "leaves" | "missing" | "requires" | "sha256"
>;

/** How an object of `bytes` stored bytes is laid out, and whether its manifest carries it. It throws as a put does. */
export function draftOf(
  { key, contentType, headers }: Pick<PutObject, "key" | "contentType" | "headers">,
  bytes: number,
  config: Config,
): { readonly draft: Draft; readonly inline: boolean } {
  const { k, m, placement, inline } = layoutOf(config, key, bytes);
  const shape = { k, bytes, stripeBytes: config.stripeBytes };
  const layout = { ...shape, key, m, blockBytes: blockBytesOf(shape), placement };
  const pageStripes = pageStripesOf(layout);
  refuseOversize({ ...layout, pageStripes });
  return { draft: { ...layout, ...(pageStripes && { pageStripes }), contentType, headers }, inline };
}

/** FAT keeps times in steps of two seconds, other file systems in steps of milliseconds and less. */
const SETTLED_MS = 2_000;

/**
 * The state of a file that can be stored by the pass that uploads it; undefined when a pass must hash it before. That
 * pass shows whether the object is there already, and finds a change of which the file's times say nothing.
 */
async function stateOfUnstored(
  file: SourceReader,
  object: PutObject,
  newest: ManifestRecord | undefined,
  { config, nowMs }: WriteContext,
): Promise<FileState | undefined> {
  const state = await file.state?.();
  // A file of one stripe is hashed in no time.
  if (!state || state.bytes <= config.stripeBytes) return undefined;
  if (mayCompress(wishOf(object, config), state.bytes)) return undefined;
  if (nowMs() - state.modifiedMs < SETTLED_MS) return undefined;
  if (object.force || !newest || isTombstone(newest)) return state;
  return newest.encryption === undefined && shownBytes(newest) !== state.bytes ? state : undefined;
}

/** Uploads the chunks under a name of their own and commits their manifest. */
async function storeNew(
  draft: Draft,
  survey: Survey,
  source: Pick<UploadInput, "file" | "expected" | "onHashed">,
  {
    onBytes,
    claim,
    ...storing
  }: Pick<PutObject, "onBytes" | "claim" | "asOf" | "beforeCommit"> & Required<Pick<CommitInput<Manifest>, "copies">>,
  context: PutParts,
): Promise<PutResult> {
  const { key, placement, inline } = draft;
  const lease = await claim?.take();
  const upload = lease?.upload ?? context.newUpload();
  const input: UploadInput = {
    ...source,
    key,
    upload,
    layout: draft,
    stores: placement.map((region) => context.stores.find((store) => store.region.name === region)!),
    chunks: placement.map((_, chunk) => chunk),
    needed: chunksNeeded(context.config, draft),
    encoder: await context.encoder(),
    context,
    onBytes: (bytes) => onBytes?.("upload", bytes),
  };
  const chunks: ChunksOfPut = {
    ...(inline === undefined && { bring: (list) => uploadChunks({ ...input, list }) }),
    restore: (manifest, list) => restoreChunks(manifest, { ...input, expected: manifest.sha256, list }, context),
  };
  const sha256 = source.expected as string;
  return commitDraft(draft, { ...storing, lease, upload, survey, sha256 }, chunks, context);
}

/** How the chunks of a put come to their regions. */
interface ChunksOfPut {
  /** Stores them, and the leaf list. An inline object has none. */
  readonly bring?: (list: LeafListUpload) => Promise<UploadedChunks>;
  /** Stores again what is gone when the manifest is there, and returns what could not be. */
  readonly restore: (manifest: Manifest, list: LeafListUpload) => Promise<readonly number[]>;
}

/** Parts of a manifest besides its draft. */
type DraftCommit = Pick<PutObject, "asOf" | "beforeCommit"> &
  Pick<CommitInput<Manifest>, "lease" | "upload" | "survey" | "copies"> & {
    /** Of what is inline, which is not read any more. */
    readonly sha256?: string;
  };

/** Commits the manifest of chunks that come while its generation is claimed. */
export async function commitDraft(
  draft: Draft,
  { upload, survey, copies = false, lease, asOf, beforeCommit, sha256: known }: DraftCommit,
  { bring, restore }: ChunksOfPut,
  context: WriteContext,
): Promise<PutResult> {
  const { key } = draft;
  let uploaded: UploadedChunks | undefined;
  const list = listUpload(draft, upload, context);
  const seal = async (generation: number, modified: string): Promise<Manifest> => {
    // Only what is inline is sealed without an upload, and it is hashed before.
    const { missing = [], sha256 = known! } = uploaded ?? {};
    // A page must survive what the object does, so `repair` brings the list to all regions.
    const leaves = draft.pageStripes ? list.all : list.regions;
    const made = { generation, upload, modified: asOf ?? modified, leaves, missing, sha256, hashes: list.hashes };
    const sealed = await sealManifest(draftManifest(draft, made), nodeSha256, context.sign);
    // A signer can be a program that asks a person.
    await beforeCommit?.();
    return sealed;
  };
  const prepare = bring && (async () => void (uploaded = await bring(list)));
  const commit = await commitRecord(
    { key, upload, survey, copies, lease, isContent: true, ...(prepare && { prepare }), seal },
    context,
  );
  const lost = await restore(commit.record, list);
  return finish("stored", commit, context, lost, draft.pageStripes ? list.lacking : []);
}

/** The leaf list of a put. Pages of hashes must be in as many regions as the object may lose, and one more. */
function listUpload(draft: Draft, upload: string, context: WriteContext): LeafListUpload {
  const { key, pageStripes } = draft;
  const { config } = context;
  const regions = keptRegions(config);
  const names = new Set(regions.map(({ name }) => name));
  const stores = context.stores.filter(({ region }) => names.has(region.name));
  const lost = promisedLosses(config, [...names]);
  const needed = pageStripes ? Math.min(stores.length, Math.max(majorityOf(stores), lost + 1)) : 0;
  return new LeafListUpload({ key, upload, object: draft, stores, needed }, context);
}

/** The fields in the order of docs/reference/format.md. */
function draftManifest(
  draft: Draft,
  {
    generation,
    upload,
    modified,
    sha256,
    leaves = [],
    missing = [],
    hashes,
  }: Pick<ManifestDraft, "generation" | "upload" | "modified" | "sha256" | "leaves" | "missing" | "hashes">,
): ManifestDraft {
  const { key, bytes, contentType, headers, k, m, stripeBytes, blockBytes, placement } = draft;
  const { pageStripes, encryption, gzip, inline } = draft;
  const name = { key, generation, upload, bytes, contentType, headers, modified };
  const code = { k, m, stripeBytes, blockBytes, sha256, placement };
  const features = { pages: pageStripes, encryption, gzip, inline };
  const requires = Object.entries(features).flatMap(([known, feature]) => (feature === undefined ? [] : [known]));
  const content = {
    ...(encryption && { encryption }),
    ...(gzip && { gzip }),
    ...(inline !== undefined && { inline }),
    ...(requires.length > 0 && { requires }),
  };
  const lists = {
    ...(leaves.length > 0 && { leaves }),
    ...(pageStripes && { pageStripes }),
    ...(missing.length > 0 && { missing }),
  };
  return { ...name, ...code, ...lists, ...content, hashes };
}

/**
 * Uploads again what an overeager cleaner took while the manifest was not written yet. Returns the chunks that could
 * not be rewritten.
 *
 * @throws WRITE_UNCERTAIN when fewer chunks are left than a put must store: the manifest is committed all the same.
 */
async function restoreChunks(
  { missing = [], ...manifest }: Manifest,
  { list, ...input }: UploadInput & { readonly list: LeafListUpload },
  context: WriteContext,
): Promise<readonly number[]> {
  const stored = input.chunks.filter((chunk) => !missing.includes(chunk));
  const gone = await findGoneChunks(manifest, stored, context);
  if (manifest.pageStripes) {
    const verdicts = await checkLeafLists(manifest, true, context);
    list.lost(verdicts.filter(({ code }) => code === "CHUNK_MISSING").map(({ region }) => region));
  }
  if (gone.length === 0 && list.isEnough) return [];
  const needed = Math.max(0, input.needed - (stored.length - gone.length));
  try {
    const { missing: lost } = await uploadChunks({ ...input, chunks: gone, needed, ...(!list.isEnough && { list }) });
    // A region that has lost them once may do so again.
    const again = await findGoneChunks(
      manifest,
      gone.filter((chunk) => !lost.includes(chunk)),
      context,
    );
    return [...lost, ...again];
  } catch (error) {
    const cause = toAgaroseError(error);
    const { key } = manifest;
    throw new AgaroseError(
      "WRITE_UNCERTAIN",
      `the manifest of ${JSON.stringify(key)} was written, but ${gone.length} of its chunks were removed in the meantime, and ` +
        `${needed} of them could not be stored again: run the command again. First error: ${cause.message}`,
      { key, gone: gone.length, needed, first: cause.toJSON() },
      cause,
    );
  }
}

/**
 * The result of a put whose content is stored already; undefined when it must be stored. It looks at every region, and
 * writes the manifest where it is missing. Another content type or other headers take a new manifest for the same
 * chunks.
 */
async function keepStored(
  object: PutObject & FileHash,
  { isEncrypted, isCompressed }: { readonly isEncrypted: boolean; readonly isCompressed: boolean },
  survey: Survey,
  context: WriteContext,
): Promise<PutResult | undefined> {
  const { newest } = survey;
  if (!newest || isTombstone(newest) || newest.missing) return undefined;
  if (namesDrained(newest, context.config)) return undefined;
  if ((newest.encryption !== undefined) !== isEncrypted || (newest.gzip !== undefined) !== isCompressed)
    return undefined;
  // An object that cannot be decrypted is not known to be the same.
  const shown = await shownManifest(newest, context.config).catch(() => undefined);
  if (!shown) return undefined;
  const placement = currentNames(newest.placement, context.config.regions);
  const before = { ...shown, placement };
  const { key, bytes: length, sha256, contentType } = object;
  const headers = withChecksums(object.headers, shown.headers);
  const { k, m, placement: places } = layoutOf(context.config, key, newest.bytes);
  const content = { key, bytes: length, sha256, contentType, headers };
  const { stripeBytes } = context.config;
  const blockBytes = blockBytesOf({ k, bytes: newest.bytes, stripeBytes });
  const wanted = { ...content, k, m, placement: places, stripeBytes, blockBytes };
  const isSame = identityOf(before) === identityOf(wanted);
  // An encrypted object has its headers encrypted with its content, and a history holds one manifest of an upload.
  const mayChange = !isEncrypted && keepMsOf(key, context.config) === 0;
  const hasSameContent = mayChange && identityOf({ ...before, contentType, headers }) === identityOf(wanted);
  if (!isSame && !hasSameContent) return undefined;
  if ((await findGoneChunks(newest, [...newest.placement.keys()], context)).length > 0) return undefined;
  await object.beforeCommit?.();
  if (!isSame) {
    const commit = await commitAgainIfNewest({ ...newest, contentType, headers }, survey, context);
    return commit && finish("stored", commit, context);
  }
  const completed = await completeRecord(newest, survey, context);
  if (!completed) {
    // It gets a generation that is ours.
    const commit = await commitAgainIfNewest(newest, survey, context);
    return commit && finish("completed", commit, context);
  }
  const { isWritten, regionsWithout } = completed;
  return finish(isWritten ? "completed" : regionsWithout.length > 0 ? "kept" : "unchanged", completed, context);
}

/** Reports what was done, and enters what is incomplete in the repair queue. */
async function finish(
  outcome: PutResult["outcome"],
  { record, regionsWithout }: Commit<Manifest>,
  context: WriteContext,
  lost: readonly number[] = [],
  withoutList: readonly string[] = [],
): Promise<PutResult> {
  const { key, version, upload, generation, bytes, sha256, modified } = record;
  const missing = [...(record.missing ?? []), ...lost].toSorted((a, b) => a - b);
  const regions = [...new Set([...regionsWithout.map(({ region }) => region), ...withoutList])];
  await enqueueRepair({ key, generation, missing, regions }, context);
  const placement = currentNames(record.placement, context.config.regions);
  const content = { key, version, upload, generation, bytes, sha256, modified, placement };
  return { ...content, outcome, regionsWithoutManifest: regionsWithout, missing };
}

/**
 * How many chunks a put must store: `write.happy`, or those that remain when the losses that the configuration promises
 * to survive have happened. Never below k.
 */
export function chunksNeeded(config: Config, { k, placement }: Pick<Draft, "k" | "placement">): number {
  const kept = config.write?.happy ?? placement.length - promisedLosses(config, placement);
  return Math.max(k, Math.min(kept, placement.length));
}

/** How many of the places, each in a region, are gone when the losses have happened that an object is to survive. */
function promisedLosses({ regions, survive }: Config, places: readonly string[]): number {
  const providers = new Map(regions.map(({ name, provider }) => [name, provider]));
  const ofProviders = places.map((region) => providers.get(region)!);
  return Math.max(fullest(places, survive.regions), fullest(ofProviders, survive.providers));
}

/** The number of chunks in the `count` fullest domains. */
function fullest(domains: readonly string[], count: number): number {
  const sizes = [...Map.groupBy(domains, (domain) => domain).values()].map(({ length }) => length);
  return sizes
    .toSorted((a, b) => b - a)
    .slice(0, count)
    .reduce((sum, size) => sum + size, 0);
}

/** The checksums that an object has stay with its bytes, unless who puts them again says others. */
function withChecksums(headers: Manifest["headers"], before: Manifest["headers"]): Manifest["headers"] {
  if (Object.keys(headers).some(isChecksum)) return headers;
  return { ...Object.fromEntries(Object.entries(before).filter(([name]) => isChecksum(name))), ...headers };
}

/** The properties that make a put write a new manifest when they differ. */
function identityOf(manifest: Draft & Pick<Manifest, "sha256">): string {
  const { sha256, bytes, k, m, stripeBytes, blockBytes, contentType, headers, placement } = manifest;
  const code = [k, m, stripeBytes, blockBytes];
  return JSON.stringify([sha256, bytes, code, contentType, Object.entries(headers).toSorted(), placement]);
}

function refuseOversize(layout: Pick<Manifest, "bytes" | "k" | "m"> & { pageStripes: number | undefined }): void {
  const pageBytes = (layout.pageStripes ?? 0) * (layout.k + layout.m) * HASH_BYTES;
  if (pageBytes > PAGE_BYTES_MAX) {
    throw new AgaroseError(
      "CODE_INVALID",
      `a page of the hashes of this object would have ${pageBytes} bytes, at most ${PAGE_BYTES_MAX} are allowed: use ` +
        "larger stripes or fewer chunks",
      { pageBytes, max: PAGE_BYTES_MAX },
    );
  }
  const chunk = Math.ceil(layout.bytes / layout.k);
  if (chunk <= CHUNK_BYTES_MAX) return;
  throw new AgaroseError(
    "CODE_INVALID",
    `a chunk of this object would have ${chunk} bytes and S3 takes at most ${CHUNK_BYTES_MAX}: use a larger k`,
    { chunkBytes: chunk, max: CHUNK_BYTES_MAX },
  );
}
