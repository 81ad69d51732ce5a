/**
 * Puts one file as one object: hash, encode, upload, and last the manifest, which makes the new version visible.
 */
import { randomBytes } from "node:crypto";
import {
  AgaroseError,
  BLOCK_BYTES,
  checkSurvival,
  encodeHashes,
  encodeManifest,
  HASH_BYTES,
  manifestName,
  parseKey,
  refuseTooLarge,
  roundRobin,
  sealManifest,
  stripeCount,
  systemSha256,
  toAgaroseError,
  type Clock,
  type Manifest,
  type ManifestDraft,
  type Random,
  type Signer,
} from "@agarose/core";
import type { Config } from "../config.ts";
import { currentManifest } from "./manifests.ts";
import type { Store } from "../store/store.ts";
import { hashFile } from "./upload/file-hash.ts";
import type { Source } from "./upload/file-source.ts";
import type { Encoder } from "./upload/stripe-encoder.ts";
import { uploadChunks } from "./upload/upload.ts";

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
export interface PutContext {
  readonly config: Config;
  readonly stores: readonly Store[];
  readonly encoder: () => Promise<Encoder>;
  /** The time of day, for `modified`. */
  readonly nowMs: () => number;
  /** Timers of waits and deadlines. Default: the system's. */
  readonly clock?: Clock;
  /** Spreads waits of writers that meet. Default: `Math.random`. */
  readonly random?: Random;
  /** Signs manifests as the publisher. Default: they stay unsigned. */
  readonly sign?: Signer;
  /** 32 hex digits that no other put ever uses. Default: at random. */
  readonly newUpload?: () => string;
  readonly signal: AbortSignal;
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
  readonly outcome: "stored" | "unchanged";
  /** Regions that did not take the manifest; at most R - (m + 1) of them. */
  readonly regionsWithoutManifest: readonly { region: string; problem: string }[];
}

/** S3 takes at most 5 GiB in one put. */
const CHUNK_BYTES_MAX = 5 * 1024 ** 3;

/**
 * Stores `object`. Until the manifest is written, readers see the version before.
 *
 * @throws KEY_INVALID, KEY_TOO_LONG, CODE_INVALID, LAYOUT_UNSAFE, FILE_UNREADABLE, MANIFEST_TOO_LARGE, STORE_FAILED,
 *   CREDENTIALS_REFUSED or ABORTED.
 */
export async function putObject(object: PutObject, context: PutContext): Promise<PutResult> {
  const { config, stores, signal, onBytes } = context;
  parseKey(object.key);
  const placement = roundRobin(config.code, config.regions, object.key);
  checkSurvival(config.code, placement, config.regions, config.survive);
  const file = await object.source.open();
  try {
    const current = await storedManifest(object.key, context);
    const hash = await hashFile(file, signal, (bytes) => onBytes?.("hash", bytes));
    const layout = { ...config.code, ...hash, stripeBytes: config.stripeBytes };
    refuseOversize(layout);
    const draft = draftManifest(object, context, { ...layout, placement }, current);
    const content = { key: object.key, bytes: hash.bytes, sha256: hash.sha256 };
    if (!object.force && current && identityOf(current) === identityOf(draft)) {
      const { version, upload, generation } = current;
      return { ...content, version, upload, generation, outcome: "unchanged", regionsWithoutManifest: [] };
    }
    const hashes = await uploadChunks({
      key: object.key,
      upload: draft.upload,
      file,
      layout,
      stores: placement.map((region) => stores.find((store) => store.region.name === region)!),
      chunks: placement.map((_, chunk) => chunk),
      encoder: await context.encoder(),
      signal,
      onBytes: (bytes) => onBytes?.("upload", bytes),
    });
    const manifest = await sealManifest({ ...draft, hashes: hashes.map(encodeHashes) }, systemSha256, context.sign);
    const regionsWithoutManifest = await writeManifest(manifest, context);
    const { version, upload, generation } = manifest;
    return { ...content, version, upload, generation, outcome: "stored", regionsWithoutManifest };
  } catch (error) {
    throw signal.aborted ? new AgaroseError("ABORTED", `the put of ${JSON.stringify(object.key)} was aborted`) : error;
  } finally {
    await file.close();
  }
}

function draftManifest(
  object: PutObject,
  context: PutContext,
  layout: Pick<Manifest, "bytes" | "sha256" | "k" | "m" | "stripeBytes" | "placement">,
  current: Manifest | undefined,
): Omit<ManifestDraft, "hashes"> {
  return {
    key: object.key,
    generation: (current?.generation ?? 0) + 1,
    upload: context.newUpload?.() ?? randomBytes(16).toString("hex"),
    bytes: layout.bytes,
    contentType: object.contentType,
    headers: object.headers,
    modified: new Date(context.nowMs()).toISOString(),
    k: layout.k,
    m: layout.m,
    stripeBytes: layout.stripeBytes,
    blockBytes: BLOCK_BYTES,
    sha256: layout.sha256,
    placement: layout.placement,
  };
}

/** The current manifest of the key. Read first, because refused credentials show early. */
async function storedManifest(key: string, { stores, signal }: PutContext): Promise<Manifest | undefined> {
  try {
    return await currentManifest(key, stores, signal);
  } catch (error) {
    if (signal.aborted || toAgaroseError(error).code === "CREDENTIALS_REFUSED") throw error;
    // An unreadable manifest does not prevent a new one. If the regions are down, the upload fails.
    return undefined;
  }
}

/** The properties that make a put write a new manifest when they differ. */
function identityOf(manifest: Omit<ManifestDraft, "hashes">): string {
  const { sha256, bytes, k, m, stripeBytes, blockBytes, contentType, headers, placement } = manifest;
  const code = [k, m, stripeBytes, blockBytes];
  return JSON.stringify([sha256, bytes, code, contentType, Object.entries(headers).toSorted(), placement]);
}

/** Writes the manifest to every region at once; m + 1 of them must take it. */
async function writeManifest(
  manifest: Manifest,
  { stores, signal }: PutContext,
): Promise<{ region: string; problem: string }[]> {
  const failures = await storeManifest(manifest, stores, signal);
  const needed = Math.min(manifest.m + 1, stores.length);
  const written = stores.length - failures.length;
  if (written >= needed) return failures;
  throw new AgaroseError(
    "STORE_FAILED",
    `the manifest of ${JSON.stringify(manifest.key)} was written to ${written} regions, ${needed} are needed: put it ` +
      `again once they answer; until then some readers may see the version before. First: ${failures[0]?.problem}`,
    { key: manifest.key, written, needed, failures },
  );
}

/** Writes a manifest to all `stores` at once, and returns the regions that did not take it. */
export async function storeManifest(
  manifest: Manifest,
  stores: readonly Store[],
  signal: AbortSignal,
): Promise<{ region: string; problem: string }[]> {
  const body = encodeManifest(manifest);
  const name = manifestName(manifest.key);
  const options = { bytes: body.length, contentType: "application/json", cacheControl: "no-cache", signal };
  const failures: { region: string; problem: string }[] = [];
  await Promise.all(
    stores.map((store) =>
      store.put(name, body, options).catch((error: unknown) => {
        failures.push({ region: store.region.name, problem: toAgaroseError(error, "STORE_FAILED").message });
      }),
    ),
  );
  return failures;
}

function refuseOversize(layout: { bytes: number; stripeBytes: number; k: number; m: number }): void {
  const bytesPerStripe = Math.ceil(((layout.k + layout.m) * HASH_BYTES) / 3) * 4 + 3;
  refuseTooLarge(stripeCount(layout) * bytesPerStripe);
  const chunk = Math.ceil(layout.bytes / layout.k);
  if (chunk <= CHUNK_BYTES_MAX) return;
  throw new AgaroseError(
    "CODE_INVALID",
    `a chunk of this object would have ${chunk} bytes, S3 takes ${CHUNK_BYTES_MAX} in one put: use a larger k`,
    { chunkBytes: chunk, max: CHUNK_BYTES_MAX },
  );
}
