/**
 * Puts one object: hash, claim, encode, upload, and last the manifest, which makes the new version visible
 * (docs/reference/format.md, "Writing").
 */
import {
  AgaroseError,
  BLOCK_BYTES,
  encodeHashes,
  encodeManifest,
  HASH_BYTES,
  isTombstone,
  parseKey,
  refuseTooLarge,
  sealManifest,
  stripeCount,
  toAgaroseError,
  type Manifest,
  type ManifestDraft,
} from "@agarose/core";
import type { Config } from "../config.ts";
import { findGoneChunks } from "./chunk-heads.ts";
import { commitAgain, commitRecord, type Commit, type RegionProblem } from "./commit/commit.ts";
import { writeRecord } from "./commit/manifest-write.ts";
import { emptySurvey, holds, surveyRegions, type Survey } from "./commit/region-survey.ts";
import { enqueueRepair } from "./commit/repair-queue.ts";
import { majorityOf, writeContextOf, type WriteContext, type WriteOptions } from "./commit/write-context.ts";
import { layoutOf } from "./layout/object-layout.ts";
import { nodeSha256 } from "./sha256.ts";
import { hashFile, readWhole } from "./upload/file-hash.ts";
import type { Source, SourceReader } from "./upload/file-source.ts";
import type { Encoder } from "./upload/stripe-encoder.ts";
import { uploadChunks, uploadLeaves, type UploadInput } from "./upload/upload.ts";

/** What to store, and how. */
export interface PutObject {
  readonly key: string;
  readonly source: Source;
  readonly contentType: string;
  /** Response headers of the object (`HEADERS_ALLOWED`). */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether to upload what is stored already. */
  readonly force: boolean;
}

/** What `putObject` works with. */
export interface PutContext extends WriteOptions {
  readonly encoder: () => Promise<Encoder>;
  /**
   * Whether no region listed a manifest of the key shortly before, which saves a look at each. What has come since is
   * seen all the same.
   */
  readonly isAbsent?: boolean;
  /** Receives counts of file bytes hashed and of chunk bytes uploaded. */
  readonly onBytes?: (pass: "hash" | "upload", bytes: number) => void;
}

/** What `putObject` did. */
export interface PutResult {
  readonly key: string;
  readonly version: string;
  /** In the names of its chunks. */
  readonly upload: string;
  readonly generation: number;
  readonly bytes: number;
  readonly sha256: string;
  /** `completed`: the chunks were there, and regions that lacked the manifest took it. */
  readonly outcome: "stored" | "completed" | "unchanged";
  /** Regions that do not have the manifest, or did not answer: a minority. */
  readonly regionsWithoutManifest: readonly RegionProblem[];
  /** Chunks that their regions did not take; `agarose repair` makes them. */
  readonly missing: readonly number[];
}

/** S3 takes at most 5 GiB in one put. */
const CHUNK_BYTES_MAX = 5 * 1024 ** 3;

/**
 * Stores `object`. Until the manifest is in a majority of the regions, readers may see the version before.
 *
 * @throws KEY_INVALID, KEY_TOO_LONG, CODE_INVALID, LAYOUT_UNSAFE, FILE_UNREADABLE, MANIFEST_TOO_LARGE, NO_QUORUM,
 *   STORE_FAILED, REPLACED_MEANWHILE, WRITE_UNCERTAIN, CREDENTIALS_REFUSED or ABORTED.
 */
export async function putObject(object: PutObject, options: PutContext): Promise<PutResult> {
  const context = writeContextOf(options);
  const { config, signal } = context;
  parseKey(object.key);
  // Refuses a layout that is unsafe before anything else happens.
  layoutOf(config, object.key, 0);
  const file = await object.source.open();
  try {
    // First of all, because refused credentials show early.
    const survey = options.isAbsent ? emptySurvey(context.stores) : await surveyRegions(object.key, context);
    const hash = await hashFile(file, signal, (bytes) => options.onBytes?.("hash", bytes));
    const { k, m, placement, inline } = layoutOf(config, object.key, hash.bytes);
    const layout = { k, m, ...hash, stripeBytes: config.stripeBytes, blockBytes: BLOCK_BYTES };
    refuseOversize(layout);
    const content = inline && { inline: await readWhole(file, object.key, hash), requires: ["inline"] };
    const { key, contentType, headers } = object;
    const draft = { ...layout, ...content, key, contentType, headers, placement };
    const kept = object.force ? undefined : await keepStored(draft, survey, context);
    return kept ?? (await storeNew(draft, survey, file, options, context));
  } catch (error) {
    throw signal.aborted ? new AgaroseError("ABORTED", `the put of ${JSON.stringify(object.key)} was aborted`) : error;
  } finally {
    await file.close();
  }
}

/** What a put decides before it claims a generation. */
type Draft = Omit<ManifestDraft, "generation" | "modified" | "upload" | "hashes" | "leaves" | "missing">;

/** Uploads the chunks under a name of their own and commits their manifest. */
async function storeNew(
  draft: Draft,
  survey: Survey,
  file: SourceReader,
  options: PutContext,
  context: WriteContext,
): Promise<PutResult> {
  const { key, placement } = draft;
  const upload = context.newUpload();
  const input: UploadInput = {
    key,
    upload,
    file,
    layout: draft,
    stores: placement.map((region) => context.stores.find((store) => store.region.name === region)!),
    chunks: placement.map((_, chunk) => chunk),
    needed: chunksNeeded(context.config, draft),
    encoder: await options.encoder(),
    context,
    onBytes: (bytes) => options.onBytes?.("upload", bytes),
  };
  let hashes: string[] = [];
  let leaves: readonly string[] = [];
  let missing: readonly number[] = [];
  const commit = await commitRecord(
    {
      key,
      upload,
      survey,
      prepare: async () => {
        if (draft.inline !== undefined) return;
        const uploaded = await uploadChunks(input);
        hashes = uploaded.hashes.map(encodeHashes);
        leaves = await uploadLeaves({ ...input, context }, uploaded.leaves);
        missing = uploaded.missing;
      },
      seal: (generation, modified) =>
        sealManifest(
          draftManifest(draft, { generation, upload, modified, leaves, missing, hashes }),
          nodeSha256,
          context.sign,
        ),
    },
    context,
  );
  await restoreChunks(commit.record, input, context);
  return finish("stored", commit, context);
}

/** The fields in the order of docs/reference/format.md. */
function draftManifest(
  { key, bytes, contentType, headers, k, m, stripeBytes, blockBytes, sha256, placement, inline, requires }: Draft,
  {
    generation,
    upload,
    modified,
    leaves = [],
    missing = [],
    hashes,
  }: Pick<ManifestDraft, "generation" | "upload" | "modified" | "leaves" | "missing" | "hashes">,
): ManifestDraft {
  const name = { key, generation, upload, bytes, contentType, headers, modified };
  const code = { k, m, stripeBytes, blockBytes, sha256, placement };
  const content = inline !== undefined && requires && { inline, requires };
  const lists = { ...(leaves.length > 0 && { leaves }), ...(missing.length > 0 && { missing }) };
  return { ...name, ...code, ...lists, ...content, hashes };
}

/** Uploads again what an overeager cleaner took while the manifest was not written yet. */
async function restoreChunks({ missing = [], ...manifest }: Manifest, input: UploadInput, context: WriteContext) {
  const stored = input.chunks.filter((chunk) => !missing.includes(chunk));
  const gone = await findGoneChunks(manifest, stored, context);
  if (gone.length > 0) await uploadChunks({ ...input, chunks: gone, needed: gone.length });
}

/**
 * The result of a put of what is stored already; undefined when it must be stored. It looks at every region, and writes
 * the manifest where it is missing.
 */
async function keepStored(draft: Draft, survey: Survey, context: WriteContext): Promise<PutResult | undefined> {
  const { newest } = survey;
  if (!newest || isTombstone(newest) || newest.missing || identityOf(newest) !== identityOf(draft)) return undefined;
  if ((await findGoneChunks(newest, [...newest.placement.keys()], context)).length > 0) return undefined;
  const bytes = encodeManifest(newest);
  const silent = survey.regions.filter(({ state }) => state === "unreachable");
  const lacking = survey.regions.filter((region) => region.state !== "unreachable" && !holds(region, bytes));
  const holders = survey.regions.length - silent.length - lacking.length;
  if (holders < majorityOf(survey.regions)) {
    // Its writer may be undoing it at this moment, so it gets a generation that is ours.
    const commit = await commitCopy(newest, survey, context);
    return commit && finish("completed", commit, context);
  }
  const writes = await writeRecord(newest, lacking, context);
  if (writes.some(({ outcome }) => outcome === "superseded")) {
    const message = `another writer replaced ${JSON.stringify(draft.key)} meanwhile: run the command again if it must win`;
    throw new AgaroseError("REPLACED_MEANWHILE", message, { key: draft.key });
  }
  const failed = [...silent, ...writes.filter(({ outcome }) => outcome === "failed")];
  const regionsWithout = failed.map(({ store, problem }) => ({
    region: store.region.name,
    problem: problem?.message ?? "did not answer",
  }));
  const isCompleted = writes.some(({ outcome }) => outcome === "written");
  return finish(isCompleted ? "completed" : "unchanged", { record: newest, regionsWithout, replaced: [] }, context);
}

/** Undefined when another writer came between, so that the object must be stored again. */
async function commitCopy(manifest: Manifest, survey: Survey, context: WriteContext) {
  try {
    return await commitAgain(manifest, survey, context);
  } catch (error) {
    if (toAgaroseError(error).code === "REPLACED_MEANWHILE") return undefined;
    throw error;
  }
}

/** Reports what was done, and enters what is incomplete in the repair queue. */
async function finish(
  outcome: PutResult["outcome"],
  { record, regionsWithout }: Commit<Manifest>,
  context: WriteContext,
): Promise<PutResult> {
  const { key, version, upload, generation, bytes, sha256, missing = [] } = record;
  const regions = regionsWithout.map(({ region }) => region);
  if (missing.length + regions.length > 0 && outcome !== "unchanged") {
    await enqueueRepair({ key, generation, missing, regions }, context);
  }
  const content = { key, version, upload, generation, bytes, sha256 };
  return { ...content, outcome, regionsWithoutManifest: regionsWithout, missing };
}

/**
 * How many chunks a put must store: `write.happy`, or those that remain when the losses that the configuration promises
 * to survive have happened. Never below k.
 */
function chunksNeeded({ regions, survive, write }: Config, { k, placement }: Pick<Draft, "k" | "placement">): number {
  const providers = new Map(regions.map(({ name, provider }) => [name, provider]));
  const lost = Math.max(
    fullest(placement, survive.regions),
    fullest(
      placement.map((region) => providers.get(region)!),
      survive.providers,
    ),
  );
  return Math.max(k, Math.min(write?.happy ?? placement.length - lost, placement.length));
}

/** The number of chunks in the `count` fullest domains. */
function fullest(domains: readonly string[], count: number): number {
  const sizes = [...Map.groupBy(domains, (domain) => domain).values()].map(({ length }) => length);
  return sizes
    .toSorted((a, b) => b - a)
    .slice(0, count)
    .reduce((sum, size) => sum + size, 0);
}

/** The properties that make a put write a new manifest when they differ. */
function identityOf(manifest: Draft): string {
  const { sha256, bytes, k, m, stripeBytes, blockBytes, contentType, headers, placement } = manifest;
  const code = [k, m, stripeBytes, blockBytes];
  return JSON.stringify([sha256, bytes, code, contentType, Object.entries(headers).toSorted(), placement]);
}

function refuseOversize(layout: { bytes: number; stripeBytes: number; k: number; m: number }): void {
  const bytesPerStripe = Math.ceil(((layout.k + layout.m) * HASH_BYTES) / 3) * 4 + 3;
  refuseTooLarge(stripeCount(layout) * bytesPerStripe);
  const chunk = Math.ceil(layout.bytes / layout.k);
  if (chunk <= CHUNK_BYTES_MAX) return;
  throw new AgaroseError(
    "CODE_INVALID",
    `a chunk of this object would have ${chunk} bytes and S3 takes at most ${CHUNK_BYTES_MAX} in one put: use a larger k`,
    { chunkBytes: chunk, max: CHUNK_BYTES_MAX },
  );
}
